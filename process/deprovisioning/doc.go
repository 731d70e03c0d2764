// Package deprovisioning has the broker's process that removes a service instance with its runtime, and the process that suspends
// an instance: it removes the runtime only. Each step is a file and a stage of its own, and process.go orders them.
//
// No runtime is left behind, even if the provisioning was interrupted after it had sent its order and before it had stored the
// result: the removal repeats the order under the same idempotency key to learn the ID of the runtime. Only Kyma Provisioner,
// which knows no keys, needs an operator in this case.
package deprovisioning
