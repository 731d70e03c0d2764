// Package outbox stores the messages of package notification until they are delivered.
//
// The messages about one upgrade form an event. They are written in the transaction of the change that they report: the first ones under
// the lease of the upgrade, before it changes anything, and the last one together with the end of the upgrade, whatever its result. Each
// message is written once, however often a step runs. A service delivers them in order, at least once: see package notify.
//
// The rows contain IDs of upgrades and instances. They are removed a week after they were written.
package outbox
