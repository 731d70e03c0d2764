// Package instances stores the broker's service instances, with sealed requests, and the cursor of the Provisioner's change feed. The table
// catalog_offered is unused; it stays so that replicas of an earlier release keep working during an update.
//
// Requests write in the transaction that accepts their operation (store.go). Steps write under the lease of their operation (fenced.go), so
// that a replica that lost its lease changes nothing. A new column takes a migration and a field of row, Insertion and instance().
package instances
