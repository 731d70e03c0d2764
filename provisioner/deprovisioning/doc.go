// Package deprovisioning is the Provisioner's process that removes a cluster: a step a file, a step a stage.
package deprovisioning
