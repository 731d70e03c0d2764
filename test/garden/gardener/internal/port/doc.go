// Package port hands out ports of the loopback interface and remembers in a file who has which, so that a server has the same
// address after a restart.
package port
