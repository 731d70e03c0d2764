// Package controlplane runs the servers of the garden: etcd, a kube-apiserver and, behind its aggregation layer, Gardener's API
// server. They start one after the other, each when the server before it is ready, and keep their ports, certificates and data in
// a folder, so clients survive a restart.
//
// A control plane is complete or not running: Start stops everything after a failure, and a server that ends later ends the
// garden. Flags of a server are in its start method in servers.go; after an upgrade of Gardener, check the groups in
// registration.go.
package controlplane
