// Package clusterclient reaches API servers of runtimes. A kubeconfig is used for one visit, and so is what client-go would keep for it.
package clusterclient
