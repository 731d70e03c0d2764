// Package runtimes simulates the API servers of all runtimes of a garden. They share one TLS listener on the loopback interface,
// each under the path /runtimes/<technical ID>. Server.ServerFor serves one runtime at the root path of another listener.
//
// Each runtime is a server of package kubeapi with its own objects and files. No workloads run and no controllers react to
// objects: the lists of Pods, Deployments and other common kinds are empty, and creating one fails with 405. This package adds
// authentication by client certificates and ServiceAccount tokens, and authorization by the ClusterRoles that are bound to a
// ServiceAccount. Server.Start sets the CA for client certificates.
//
// To add a kind, extend storedKinds or emptyKinds. Put rules for objects in admit, and rules for roles in allows.
package runtimes
