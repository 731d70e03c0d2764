// Package notifications stores the messages of package notify until they are delivered.
//
// The messages about one upgrade have the ID of the upgrade as their event. They are rows that a position in the log of package eventlog
// creates, as the deliveries of webhooks are: the replica that has the lease turns the next events into messages and advances the
// position, in one transaction. The start of a maintenance becomes two messages, and the end of its upgrade the last one, whatever the
// result. Each message is stored once. A service delivers them in order, at least once: see package notify.
//
// The rows contain IDs of upgrades and instances. They are removed a week after they were written.
package notifications
