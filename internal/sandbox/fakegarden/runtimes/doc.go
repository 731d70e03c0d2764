// Package runtimes simulates the API servers of all runtimes of a garden. They share one TLS listener on the loopback, each under a path of
// its own; Alone serves one of them at the root of another listener.
//
// A simulated API server serves the kinds of objects in kinds, keeps them in files, and supports get, list, create, update, server-side
// apply and delete, but no watch, and it runs nothing. It accepts client certificates of the authority that Start names, and tokens of
// its ServiceAccounts, as far as the ClusterRoles allow that are bound to them.
//
// A further kind is a line in kinds.
package runtimes
