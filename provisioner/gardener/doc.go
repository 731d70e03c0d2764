// Package gardener is the Provisioner's client of Gardener. It applies, reads, deletes and watches Shoots, requests admin kubeconfigs, and
// translates the status of Shoots and errors of the API into package failure. A new Gardener error code gets its meaning in codes.go.
package gardener
