// Package sealcount counts the values that the replicas of a service have sealed with each key. AES-GCM with random nonces is secure
// for at most 2^32 values under one key, see NIST SP 800-38D, section 8.3. Before that, operators must replace the key.
//
// A Counter stores the count of its replica every minute. A replica that crashes loses the count of up to a minute, and values that
// were sealed by releases without a counter are not counted. The warning at half of the limit leaves room for both.
package sealcount
