// Package certificate makes the certificates of the local garden: the authorities of its runtimes, the serving certificates of
// their API servers and the client certificates of their users.
package certificate
