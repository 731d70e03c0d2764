// Package apiserver starts a kube-apiserver and its etcd for tests. Their binaries are in .bin, where `make garden` puts
// them.
package apiserver
