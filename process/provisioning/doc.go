// Package provisioning is the broker's process that makes a runtime for a service instance: a step a file.
package provisioning
