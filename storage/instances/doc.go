// Package instances stores the broker's service instances, with sealed requests, and two single rows of the broker: the cursor of the
// Provisioner's change feed, and the time since when the catalog is offered.
//
// Requests write in the transaction that accepts their operation (store.go). Steps write under the lease of their operation (fenced.go), so
// that a replica that lost its lease changes nothing. A new column takes a migration and a field of row, Insertion and instance().
package instances
