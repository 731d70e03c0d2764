// Package instanceevents stores an event for each change that the broker makes to an instance outside of operations. An example
// is the renewal of a kubeconfig that another system holds. As in Kubernetes, repeated events are combined, so a row is added
// only when the result changes.
//
// Before a change outside of the database, the broker stores an intent. It removes the intent in the transaction that records the
// event. If the replica dies in between, the next replica that works on the instance finds the intent and records the event.
//
// Rows are removed with their instance, after the retention period, and when an instance has more than Limit events for one
// system. They contain no secrets, because the broker writes the messages itself.
package instanceevents
