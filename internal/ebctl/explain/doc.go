// Package explain reads an operation's record for people: where it stands, since when, why it waits and when it goes on, what
// failed, and what one can do about it.
package explain
