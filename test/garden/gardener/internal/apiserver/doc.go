// Package apiserver starts kube-apiserver, as the garden's own and as the API server of a runtime.
package apiserver
