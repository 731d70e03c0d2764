// Package auth authenticates and authorizes the clients of a service: TLS, users with passwords, OpenID Connect tokens, client
// certificates, roles and rate limits.
//
// New builds an Access from the configuration; its Authorizer wraps endpoints. An Authenticator identifies clients by one kind of
// credentials. Wrong credentials are never ignored in favor of others: the first kind that a request carries decides. A service that
// listens beyond the loopback does not start without authentication. Passwords, tokens and their contents never appear in errors and logs.
//
// To add a kind of credentials, implement Authenticator and build it from the configuration in access.go.
package auth
