// Package gardener is the Provisioner's client of Gardener. It applies, reads, deletes and watches Shoots, requests admin
// kubeconfigs, and translates the status of Shoots and API errors into failure.Errors.
//
// All writes are idempotent, and none changes a Shoot of another runtime. Change, Adopt and Claim fail if the Shoot has changed
// since it was read. No call waits for Gardener to finish: steps read the status later, when the watch reports a change. To
// support a new error code of Gardener, add its meaning to codes.go; errors of the API itself belong in errors.go.
package gardener
