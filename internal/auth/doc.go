// Package auth authenticates and authorizes the clients of a service: TLS, users with passwords, OpenID Connect tokens, client
// certificates, roles and rate limits.
//
// New builds an Access from the configuration. Its Authorizer wraps endpoints; an Authenticator identifies clients by one kind of
// credentials.
//
// If a request carries several kinds of credentials, only one decides: the first in the order password, token, certificate. If
// those credentials are invalid, the request is rejected, even if the others are valid. A service that other machines can reach
// does not start without authentication. Passwords, tokens and the contents of tokens never appear in errors or logs.
//
// To add a kind of credentials, implement Authenticator and build it from the configuration in access.go. To add a role, see
// roles.go.
package auth
