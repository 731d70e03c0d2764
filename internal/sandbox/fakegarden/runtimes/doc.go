// Package runtimes plays the API servers of all runtimes of a garden in memory: one TLS listener on the loopback, on which each runtime has
// a path of its own. It serves objects of a few kinds, kept in files, to client certificates that the runtime's own authority has signed
// and to tokens of its ServiceAccounts, each as far as the ClusterRoles allow that are bound to it.
package runtimes
