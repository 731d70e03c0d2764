// Package notification sends maintenance events to a notification service, which informs customers about upgrades of their
// runtimes.
//
// An event has an ID and tenants. It is created before the maintenance begins, and updated when the maintenance begins and when
// it ends, unless it is canceled. A Message is one such change to the event of an upgrade. Package notifications stores messages
// until they are delivered.
package notification
