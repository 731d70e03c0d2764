// Package explain turns an operation's record into an explanation for people: its state and place, the reason and the end of a wait, the
// problem, and advice with the commands to run.
//
// The package only reads the record; it calls nothing. New advice is a rule in advice.go.
package explain
