// Package auth authenticates and authorizes the clients of a service: TLS, users with passwords, OpenID Connect tokens, client
// certificates, roles and rate limits.
//
// New builds an Access from the configuration; the Authorizer of the Access wraps endpoints. An Authenticator identifies clients by one kind
// of credentials.
//
// If a request carries credentials of several kinds, the first kind decides: invalid credentials are never ignored in favor of
// others. A service that other machines can reach does not start without authentication. Passwords, tokens and the contents of
// tokens never appear in errors or logs.
//
// To add a kind of credentials, implement Authenticator and build it from the configuration in access.go. To add a role, see roles.go.
package auth
