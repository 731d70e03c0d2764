// Package webhook sends messages to receivers as the specification Standard Webhooks describes it: signed with HMAC-SHA256, and with several
// signatures while a secret is rotated. It connects to public addresses only, and to networks that an operator allows. Errors contain neither
// URLs nor secrets.
package webhook
