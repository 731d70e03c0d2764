// Package failure defines the errors that explain themselves: what they mean (kind), where they happened (component), why (reason), the text
// for the user, and a cause for the log.
//
// MappingOf maps a kind to OSB, GraphQL, REST and the engine's retry, so all protocols treat an error alike. An error that is no *Error is
// internal: its text is logged and never reaches a user. A new reason gets an entry in Reasons, which the page docs/user/errors.md lists.
package failure
