// Package explain describes an operation for people: its state, its current stage and step, why and until when it waits, its problem,
// and the commands to run next.
//
// Of computes an Explanation from a response of the operator API and the current time, without further calls. An Explanation prints as
// text or encodes as JSON. New advice is a rule in advice.go.
package explain
