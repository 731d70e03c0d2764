// Package notifications stores the messages of package notify until they are delivered.
//
// All messages about an upgrade have the ID of the upgrade as their event. Like webhook deliveries, they come from the log of
// package eventlog: the replica that has the lease turns the next events into messages and advances the stored position in the
// log, in one transaction. The start of maintenance becomes two messages. The end of the upgrade becomes the last message,
// regardless of the result. Each message is stored once. Package notify delivers the messages of an event in order, each at least
// once.
//
// The rows contain IDs of upgrades and instances. They are removed after a week, once their upgrade has ended.
package notifications
