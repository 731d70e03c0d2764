// Package runtimes stores the Provisioner's runtimes with their encrypted configurations, the idempotency keys of accepted
// mutations, and the registrations in Director that may need to be cleaned up.
//
// A runtime's row stays after the deletion of its cluster, so that clients can query the status. A new runtime may then reuse
// the name of the Shoot. A new column needs a migration and a field of row, and must be added to listedColumns, Insert and
// row.runtime. Lists never decrypt a configuration.
//
// registrations.go stores the intent to register a runtime before the call to Director, so that after a crash the caretaker finds
// registrations without a runtime.
package runtimes
