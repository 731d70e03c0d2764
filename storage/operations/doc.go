// Package operations stores the operations of an engine, the attempts of their steps, and their timelines. The broker and the
// Provisioner each have these tables in their own database.
//
// Store implements process.Store (claim.go, save.go), whose documentation defines the contract. The services use Store to accept
// operations (accept.go), to read and list them (read.go, list.go, timeline.go), to cancel, skip and wake them (intervene.go), and to
// change who may see them (visible_to.go). retention.go determines which operations are still needed after their retention period.
// Package auditlog removes the others, together with those parts of their audit records that must not stay. timeline_retention.go
// removes timelines earlier.
//
// Store guarantees:
//
//   - At most one operation of an instance is in progress. The unique index operations_one_active enforces this between replicas.
//   - Every write of a run is fenced by its lease, see saveProgress. Steps fence their writes to other tables with HasLease, or make
//     them as the Effect of the operation.
//   - The effect of an operation is written in the same transaction as its success.
//   - Statements on several rows lock the rows in the order of their IDs, so that they do not deadlock. The exceptions are the
//     statements of AtEnd, which Save repeats after a deadlock.
//   - A wake-up during a run is not lost: if the column woken is set, saveProgress keeps the time of the wake-up in next_run_at.
//
// A new column needs a migration, a field of row and of process.Record, and, if a run changes it, a line in saveProgress. A new
// statement in the engine's poll must read only a few rows of a table with a hundred thousand unfinished operations. In package
// storage, plans_crowded_test.go checks this.
package operations
