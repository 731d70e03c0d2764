// Package provisioner simulates the Kyma Provisioner. It validates requests against the Kyma schema, has neither idempotency keys nor a
// change feed, and runs the operations of a runtime one after another. Tests inject faults with [Provisioner.Fail]. Its runtimes have no
// clusters: an operation only takes time.
package provisioner
