// Package provisioning is the broker's process that makes a runtime for a service instance, and the one that makes it anew for an
// instance that was suspended: a step a file.
package provisioning
