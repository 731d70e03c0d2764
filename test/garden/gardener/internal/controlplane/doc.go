// Package controlplane starts the servers of the garden: etcd, a kube-apiserver and, behind its aggregation layer, Gardener's API server.
package controlplane
