// Package director is a client of Director, the registry of runtimes in Compass. It registers runtimes, updates their condition, and issues
// one-time tokens for their agents. Package wire is generated from operations.graphql; a new call is a query there and a method of Client.
//
// Errors are of package failure. Invalid, Conflict and NotFound are decisions of Director. Transient errors may pass: Director does not
// answer, answers something unexpected, or rejects our credentials until an operator corrects them.
package director
