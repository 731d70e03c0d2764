// Package deprovisioning has the broker's process that removes a service instance with its runtime, and the one that suspends the
// instance: it removes the runtime only. Each step is a file and a stage of its own; process.go orders them.
package deprovisioning
