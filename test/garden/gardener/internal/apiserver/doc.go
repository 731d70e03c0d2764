// Package apiserver starts kube-apiserver: that of the garden and those of the runtimes. It also keeps their certificates and writes their
// kubeconfigs.
package apiserver
