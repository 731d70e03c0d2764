// Package webhook sends messages to receivers according to the Standard Webhooks specification: signed with HMAC-SHA256, and with
// several signatures while a secret is being rotated. It connects only to public addresses and to networks that an operator
// allows. Errors contain neither URLs nor secrets.
package webhook
