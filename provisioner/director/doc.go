// Package director is a client of Director, the registry of runtimes in Compass. It registers runtimes, updates their labels and
// conditions, and issues one-time tokens for their agents. It fetches OAuth access tokens with client credentials and renews
// them.
//
// Errors come from package failure. Invalid, Conflict and NotFound are Director's decisions, so a retry would fail again.
// Transient errors are temporary: Director does not respond, returns an unexpected response, or rejects the credentials until an
// operator corrects them. No error contains a token, a credential or an internal address.
//
// Package wire is generated from operations.graphql. To add a call, add its query there, run go generate, and write a method for
// Client. A new error code of Director goes into problem.go.
package director
