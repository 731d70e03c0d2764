// Package progress shows how an operation goes on: drawn anew in place on a terminal, a line for each change elsewhere.
package progress
