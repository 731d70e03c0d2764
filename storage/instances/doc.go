// Package instances stores the broker's service instances, with encrypted requests, and the broker's position in the Provisioner's
// change feed.
//
// Request handlers write in the transaction that accepts the operation (store.go). Steps write under the lease of their operation
// (fenced.go), so a replica that has lost its lease changes nothing. A new instance may reuse the ID of a deleted instance, but
// never the name of its Shoot, so the Shoot name distinguishes the two.
//
// A new column needs a migration and a field of environment.Instance, and must be added to columns, to Insertion and, if it can
// change, to Update. If the table stores it as a different type, it also needs a field of row and a line in instance().
//
// The catalog_offered table is no longer used. It still exists so that replicas of an earlier release continue to work during an
// update.
package instances
