// Package runtimes plays the API servers of all runtimes of a garden in memory: one TLS listener on the loopback, on which each runtime has
// a path of its own. It answers just enough for a client to find out who serves and that it is ready, and only to client certificates
// that the runtime's own authority has signed.
package runtimes
