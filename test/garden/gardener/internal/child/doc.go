// Package child runs the garden's servers as processes of their own, each with a log file, that never outlive the garden where the
// operating system can promise it.
package child
