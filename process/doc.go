// Package process is the engine: it runs operations through stages of steps until they succeed or fail, on any replica and across
// crashes. It knows nothing of clusters or of the Open Service Broker API.
//
// An operation is a row in a Store. The workers of all replicas claim due rows under a lease, run the steps, and write the results
// under the fence of the lease. A finished stage is recorded with the operation and never runs again; an interrupted stage restarts
// from its first step. Nothing waits inside a worker: a step that has to wait returns a duration and runs again later.
//
// The engine guarantees:
//
//   - At most one operation of an instance is in progress, and its results are written by one replica only.
//   - A crash loses at most the work since the last write. Steps are therefore safe to repeat.
//   - Kinds share the workers, and the tenants of a kind take turns: neither can starve the others.
//
// A new process is a Process value with steps of its own, see the folders below this one and docs/contributor/add-a-step.md.
// Retry behavior is in retry.go, scheduling in claim.go, leases in lease.go, and the rules of one run in run.go and attempt.go.
package process
