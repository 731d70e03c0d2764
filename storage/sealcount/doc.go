// Package sealcount counts the values that the replicas of a service have sealed with each key. AES-GCM with random nonces is
// secure for at most 2^32 values under one key, see NIST SP 800-38D, section 8.3. Operators must replace a key before it reaches
// this limit.
//
// A Counter stores the count of its replica every minute. When a replica crashes, up to a minute of its count is lost. Values
// that were sealed by releases without a counter are not counted. These gaps do no harm, because the warning comes at half of the
// limit.
package sealcount
