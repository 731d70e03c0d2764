// Package adminkubeconfig answers the subresource adminkubeconfig of Shoots as Gardener's API server does: with a kubeconfig whose client
// certificate is signed, for this request, by the runtime's client authority.
package adminkubeconfig
