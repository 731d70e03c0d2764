// Package adopt implements `provisioner adopt`, which takes over the runtimes of Kyma Provisioner, as released in 2023.
//
// It reads the rows of Kyma Provisioner (former.go), maps each cluster to an order, a runtime and its last operations
// (mapping.go), checks the Shoot and patches it (adopt.go, with package gardener), and stores the runtime in one transaction with
// its audit entry. A run can be repeated: it skips what earlier runs have adopted. To support another column of Kyma
// Provisioner's database, extend former.go and mapping.go.
package adopt
