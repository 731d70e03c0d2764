// Package deprovisioning contains the broker's process that removes a service instance with its runtime, and the process that
// suspends an instance by removing only its runtime. Each step has its own stage. The steps for one system share a file, and
// stages.go describes their stages. The function removing in process.go orders them.
//
// A removal leaves no runtime behind, even if the provisioning was interrupted between sending the order and storing the result:
// the removal repeats the order under the same idempotency key to find the ID of the runtime. Kyma Provisioner has no idempotency
// keys. If the broker is connected to it, an operator must look for the runtime.
package deprovisioning
