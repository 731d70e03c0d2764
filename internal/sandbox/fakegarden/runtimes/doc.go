// Package runtimes simulates the API servers of all runtimes of a garden. They share one TLS listener on the loopback and are
// served under the path /runtimes/<technical ID>. Server.ServerFor serves one runtime at the root path of another listener.
//
// Each runtime is a server of package kubeapi with its own objects and files. No workloads run and no controllers react to
// objects: the lists of Pods, Deployments and other usual kinds are empty, and creating one fails with 405. This package adds authentication and authorization: client
// certificates, ServiceAccount tokens, and the ClusterRoles that are bound to an account. Start sets the authority of the client
// certificates.
//
// Add a kind to storedKinds or emptyKinds, a rule for an object to admit, and a role to allows.
package runtimes
