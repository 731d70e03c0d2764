// Package process is the engine. It runs operations through stages of steps until they succeed or fail, on any replica and across
// crashes. It knows nothing about clusters or the Open Service Broker API.
//
// # Model
//
// An operation is a row in a Store, described by a Record. Its kind names a Process, which lists stages in order; a Stage lists
// steps. The handler of a request stores a new operation as Pending in the transaction of the request, and calls Engine.Wake
// after the commit. Each replica has one Engine, and all engines share the rows.
//
// # Claim, lease and fence
//
// A free worker claims due operations. An operation is due if it is pending and the first of its instance, if the time in
// Record.NextRun has come, or if its lease has expired. A claim sets a lease (owner and expiry) and raises the fence, a counter
// in the row. The replica renews its leases at intervals of a third of their duration. If the replica dies, its leases expire,
// and another replica claims the operations.
//
// Every write of a run names the owner and the fence of its lease. If another replica has claimed the operation in the meantime,
// the write fails with ErrLeaseLost and changes nothing. A frozen replica that continues late can therefore repeat a call to an
// upstream, but cannot overwrite the results of its successor.
//
// # Stages and steps
//
// A run calls the steps of the first unfinished stage in order. It stores the operation with its data when a stage finishes, when
// a step waits or fails, and when a step calls Operation.Save. A finished stage never runs again. After a crash or a wait the
// unfinished stage starts again from its first step, with the data of the last write.
//
// A step must therefore be safe to repeat. It first checks whether its work is done. Before a call that creates something in an
// upstream, it stores the intent with Operation.Save, together with a name or an idempotency key that never changes. A step that
// polls belongs in a separate stage, so that its waits do not repeat the request.
//
// The Effect of an operation writes the rows that show its result. The last step sets the effect, and the store executes it in the
// transaction that ends the operation, so that readers see both or neither.
//
// # Waiting, retrying and giving up
//
// Workers never wait. A step that has to wait returns a duration, usually with Await. The engine then releases the lease and
// sets NextRun. The event named in Record.WaitingFor makes the operation due earlier: the store sets NextRun to now and marks
// the row as woken, so an event that arrives during the run is not lost. Polling is the fallback.
//
// A step that returns an error of a retryable kind (see package failure) runs again according to the RetryPolicy of its stage.
// The retry window starts with the first of the consecutive failures. A success or a wait ends the window. Once the window has
// passed, the next failure fails the operation. Any other error fails the operation immediately. Process.Limit bounds the whole
// operation, including all waits.
//
// # Guarantees
//
//   - At most one operation of an instance is in progress, and only the replica with the lease writes its results.
//   - A crash loses at most the work since the last write.
//   - Kinds share the workers, and the tenants of a kind take turns, so no kind or tenant can starve the others.
//   - A cancellation takes effect before the next step, never during a step.
//   - The timeline has an entry for every attempt whose result was stored, except for repeated successes after a restart of a
//     stage.
//
// # Usual changes
//
// A new step needs a file in the folder of its process and a line in that folder's process.go. It needs no type of its own if
// StepFunc or Action creates it. A new process needs a Process value that the service registers, and a scenario in test/crash.
// docs/contributor/add-a-step.md has the checklist, and example_test.go has a small process that runs.
//
// Retry behavior is in retry.go, scheduling in claim.go, leases in lease.go, and the rules of one run in run.go, attempt.go and
// save.go.
package process
