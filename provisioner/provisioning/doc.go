// Package provisioning is the Provisioner's process that makes a cluster: a step a file.
package provisioning
