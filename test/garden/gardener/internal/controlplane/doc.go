// Package controlplane runs the servers of the garden: etcd, a kube-apiserver, and Gardener's API server behind the aggregation
// layer. Each server starts when the previous one is ready. Ports, certificates and data are stored in a folder, so clients
// continue to work after a restart.
//
// A control plane runs either completely or not at all: if a server fails to start, Start stops all others; if a server exits
// later, the garden exits. The flags of a server are in its start method in servers.go. After an upgrade of Gardener, check the
// API groups in registration.go.
package controlplane
