// Package runtimes stores the Provisioner's runtimes with their sealed configurations, the idempotency keys of accepted
// mutations, and the registrations in Director that may need to be cleaned up.
//
// A runtime's row is kept after its deletion, so that its status can be queried; its Shoot's name is free again. A new column
// takes a migration and a field of row, Insert and find.
package runtimes
