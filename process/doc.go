// Package process is the engine: it carries operations through stages of steps until they have succeeded or failed, on any
// replica, over any crash. It knows nothing of clusters or of Open Service Broker.
//
// An operation is a row. Workers of all replicas claim due rows under a lease, run the steps, and write what came of it under
// the lease's fence. A finished stage is recorded with the operation and never entered again; whatever interrupts a stage, it
// starts over with its first step. Nothing waits inside a worker: a step that has to wait says for how long and comes back.
package process
