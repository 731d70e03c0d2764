// Package deprovisioning contains the broker's process that removes a service instance with its runtime, and the process that
// suspends an instance by removing only its runtime. Each step is a file and a stage of its own, and process.go orders them.
//
// No runtime is left behind, even if the provisioning was interrupted after sending its order and before storing the result: the
// removal repeats the order under the same idempotency key to learn the ID of the runtime. Kyma Provisioner has no idempotency
// keys, so in this case an operator has to look for the runtime.
package deprovisioning
