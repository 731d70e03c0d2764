// Package eventlog stores the events of the broker: what happened to instances, operations and orchestrations. It is the outbox for event
// streams, webhooks and messages to the notification service.
//
// Database triggers add each event in the transaction of the change that it reports, so no code that changes rows can forget the
// event or needs an additional statement for it. The exception is the start of a maintenance, which does not change any row:
// StartMaintenance adds its event.
//
// Transactions do not commit in the order in which they write, so a reader that follows a sequence number would miss events. Therefore
// Publish moves committed events to the log and numbers them there, in the order in which they were written. Only one transaction at a
// time does this. A reader that has seen a position can be sure that no event with a lower position appears later.
//
// The events of an instance appear in the order of its changes, because each change locks the instance. Events contain IDs and values
// of enumerations, but no free text, user names or parameters. They are removed after the retention period, and when their account is
// erased.
package eventlog
