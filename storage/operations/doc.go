// Package operations stores the engine's tables: operations, the attempts of their steps, and their timelines. Broker and provisioner each
// have these tables in their own database. Store implements process.Store, and the services use it to accept, read and control operations.
//
// It guarantees that at most one operation of an instance is in progress (index operations_one_active), that every write of a run is
// fenced by its lease, and that statements on several rows lock them in the order of their ids, so that they never deadlock.
//
// A new column takes a migration, a field of row and of process.Record, and, if a run changes it, saveProgress in save.go. The plans of all
// statements are tested in the plans_*_test.go files of package storage.
package operations
