// Package provisioning has the broker's process that creates a runtime for a service instance, and the one that creates it again for a
// suspended instance. Each step is a file; process.go orders them. The order of a runtime carries the operation's id as its idempotency
// key, so no crash creates a second one.
package provisioning
