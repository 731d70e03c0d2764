// Package auth finds out who makes a request, by a password, a token or a certificate, and lets those pass who have the role for it.
package auth
