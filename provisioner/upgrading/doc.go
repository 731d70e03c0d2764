// Package upgrading is the Provisioner's process that changes a cluster: a step a file.
package upgrading
