// Package apiserver starts kube-apiservers: one for the garden, and those of the runtimes. It also issues their certificates and
// writes their kubeconfigs.
//
// The address, the authority and the objects of an API server survive a restart, so its clients and kubeconfigs keep working.
// Flags of all API servers are in arguments; those of one API server are in its [Config].
package apiserver
