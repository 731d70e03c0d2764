// Package runtimes stores the Provisioner's runtimes with their sealed configurations, the idempotency keys of accepted
// mutations, and the registrations in Director that may need to be cleaned up.
//
// A runtime's row is kept after the deletion of its cluster, so that clients can query its status; the Shoot's name may then be
// reused. A new column needs a migration and a field of row, and must be added to columns, Insert and find.
//
// registrations.go implements an intent: the row of a registration exists before the call to Director, so that the caretaker
// finds registrations without a runtime after a crash.
package runtimes
