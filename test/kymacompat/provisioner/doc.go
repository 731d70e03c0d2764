// Package provisioner simulates the Kyma Provisioner. It validates requests against the Kyma schema, has neither idempotency keys nor a
// change feed, and rejects an operation while another one of the runtime is running. Tests inject faults with [Provisioner.Fail]. Its runtimes have no
// clusters: an operation only takes time.
package provisioner
