// Package adopt takes over the instances of Kyma Environment Broker (KEB) of 2023: `broker adopt`. The runtimes must already be in this
// project's Provisioner, which `provisioner adopt` does.
//
// It reads the former rows (former.go), maps each instance and its last operations (mapping.go, parameters.go), completes the cluster from
// the Provisioner, and stores the instance in one transaction with its audit entry (adopt.go). A run can be repeated.
package adopt
