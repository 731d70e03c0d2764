// Package storage opens the database of a service, PostgreSQL or SQLite, migrates its schema, and runs its statements. The stores in the
// packages below it share one set of queries for both databases; the few differences are fragments that DB returns.
//
// It guarantees that times have one stored form (Time), that no call outlives its context by more than a second, that calls without a
// deadline end after 10 s, and that errors of both drivers are classified alike (IsDuplicate, IsUnavailable).
//
// Rows have no version of their own: migrations bring them all to the current schema. The exceptions are columns with JSON, whose types
// document their stored form and its versions: operations.payload, instances.request, runtimes.configuration, bindings.access, audit.entry.
//
// A new table belongs to a store: add a numbered file to its migrations folder, never change one that was released, and add the plans of
// its statements to plans_*_test.go. Databases of earlier releases are opened by test/upgrade.
package storage
