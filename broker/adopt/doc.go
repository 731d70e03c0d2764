// Package adopt implements `broker adopt`, which takes over the instances of Kyma Environment Broker (KEB), as of 2023. The
// runtimes must already be in this project's Provisioner; `provisioner adopt` takes them over.
//
// The command reads the rows of KEB (former.go), maps each instance and its last operations (mapping.go, parameters.go),
// completes the cluster from the Provisioner, and stores the instance in one transaction with its audit entry (adopt.go). Runs
// are idempotent. The package also turns Shoots into instances (shoot.go).
package adopt
