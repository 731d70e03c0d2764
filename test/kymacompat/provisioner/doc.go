// Package provisioner simulates the Kyma Provisioner. It validates requests against the Kyma schema in schema.graphql and
// executes them in memory. Like the Kyma Provisioner, it has neither idempotency keys nor a change feed, checks that the tenant
// of a call owns the runtime, and rejects an operation while another operation of the runtime is in progress.
//
// Its runtimes have no clusters: an operation only takes time, and one API server serves all runtimes. Tests inject faults with
// [Provisioner.Fail] and inspect the result with [Provisioner.Calls] and [Provisioner.Runtimes].
//
// When the broker starts to use another field of the schema, add a case to resolve, which rejects all other fields.
package provisioner
