// Package explain describes an operation for users: its state, its current stage and step, why and how long it waits, its
// problem, and the commands to run next.
//
// Of creates an Explanation from a response of the operator API and the current time, without further calls. An Explanation can
// be printed as text or encoded as JSON. To add advice, add a rule to advice.go.
package explain
