// Package instances stores the broker's service instances, with sealed requests, and the cursor of the Provisioner's change feed.
//
// Requests write in the transaction that accepts their operation (store.go). Steps write under the lease of their operation
// (fenced.go), so that a replica that has lost its lease changes nothing. The ID of a deleted instance may be reused, but the
// name of its Shoot never is, so it distinguishes a new instance from a deleted one.
//
// A new column needs a migration and a field of row, and must be added to columns, Insertion and instance(). The table
// catalog_offered is unused; it stays so that replicas of an earlier release keep working during an update.
package instances
