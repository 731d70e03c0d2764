// Package session protects the console: it manages logins and sessions, sets the headers of responses, and chooses between the
// operator pages and the tenant pages.
//
// Sessions.Handler wraps the handlers of the pages. A page reads the client with auth.FromContext and the session with
// FromContext. A session is an encrypted cookie, so all replicas accept it and a restart does not end it;
// docs/adr/0055-sessions-of-the-console.md explains the choice.
//
// Changes from pages of other origins are rejected: the Authorizer checks the Sec-Fetch-Site and Origin headers, the cookie has
// SameSite=Lax, and a change without both headers is rejected. Forms therefore need no token.
package session
