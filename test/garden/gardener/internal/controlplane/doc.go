// Package controlplane starts what a garden is made of: etcd, a kube-apiserver and, behind its aggregation layer, Gardener's API server.
package controlplane
