// Package eventlog stores the events of the broker: what happened to instances, operations and orchestrations.
//
// The database adds an event in the transaction of the change that it reports, by triggers, so no writer can forget it and no change needs a
// further statement. Transactions do not commit in the order in which they write. A reader that follows a number from a sequence would
// therefore miss events. So Publish moves committed events, in the order in which they were written, to the positions of the log. Only one
// transaction at a time does this. Positions are complete: a reader that has seen one has seen all earlier ones.
//
// Events of one instance have the order of its changes, because changes of an instance lock it. Events contain IDs and values from closed
// sets, but no texts, names of users or parameters. They are removed after the retention period, and when their account is erased.
package eventlog
