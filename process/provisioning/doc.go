// Package provisioning contains the broker's process that creates a runtime for a service instance, and the process that
// recreates the runtime of a suspended instance. Each step has its own file, and process.go orders the steps.
//
// The order for a runtime carries the operation's ID as its idempotency key, and the operation stores the intent before sending
// the order. A crash therefore never creates a second runtime, and the deprovisioning process always finds the runtime of an
// interrupted order. Data that a step passes to later steps is part of environment.Data.
package provisioning
