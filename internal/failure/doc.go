// Package failure defines the errors of the services. Each has a kind (its meaning), a component (where it happened), a reason (for
// programs), a text for the user, and a cause for the log.
//
// MappingOf maps a kind to OSB, GraphQL, REST and the engine's retry, so all protocols treat an error alike. An error without an *Error in
// its chain is internal: its text is logged and never reaches a user. A new reason gets an entry in Reasons, which the page
// docs/user/errors.md lists.
package failure
