// Package instanceevents stores what the broker has done to instances besides operations, such as the renewal of a kubeconfig that another
// system has. Repeated events are combined into one row, as those of Kubernetes are, so a row is added only when the result changes.
//
// A change outside of the database is preceded by an intent, which is removed in the transaction that records the event. If the replica dies
// in between, the next replica finds the intent and records the event.
//
// The rows are removed with their instance, after the retention period, and if a system has more than Limit of them. They contain no
// secrets: the texts are those of the broker.
package instanceevents
