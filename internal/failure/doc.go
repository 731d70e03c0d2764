// Package failure defines the errors of the services. An Error has a kind (how to react), a component (where the error occurred),
// a reason (a code for programs), a message (for users), a detail (for operators), and a cause (for the log).
//
// MappingOf maps each kind to the status of OSB, REST and GraphQL responses and to the engine's decision to retry, so all
// protocols treat an error the same way. An error without an *Error in its chain is an internal error: its text is logged and
// never shown to a user.
//
// Suggestion completes error messages about unknown flags, states, plans and parameters with the word that the user probably meant.
//
// To add a reason, add a constant and an entry in Reasons. The page docs/user/errors.md is generated from Reasons.
package failure
