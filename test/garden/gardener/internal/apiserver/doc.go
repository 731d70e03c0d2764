// Package apiserver starts kube-apiservers: one for the garden, and one for each runtime. It also issues their certificates and
// writes their kubeconfigs.
//
// The address, CA and objects of an API server survive a restart, so clients and kubeconfigs keep working. Flags that all API
// servers have in common are in arguments; flags of a single API server are in its [Config].
package apiserver
