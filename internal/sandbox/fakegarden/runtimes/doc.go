// Package runtimes simulates the API servers of all runtimes of a garden. They share one TLS listener on the loopback, each under
// the path /runtimes/<technical ID>; Alone serves one of them at the root of another listener.
//
// Each runtime is a server of package kubeapi with its own objects and files. It runs nothing: a Deployment would be an unknown
// kind, and no controller reacts to an object. This package adds the access to a runtime: client certificates of the authority
// that Start names, tokens of ServiceAccounts, and the ClusterRoles that are bound to an account.
//
// A further kind is a line in kinds, a rule for an object goes into admit, a role into allows.
package runtimes
