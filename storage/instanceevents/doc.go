// Package instanceevents stores what the broker has done to instances besides operations, such as the renewal of a kubeconfig that another
// system has. Repeated events are combined into one row, as those of Kubernetes are, so a row is added only when the result changes.
//
// The rows are removed with their instance, after the retention period, and if a system has more than Limit of them. They contain no
// secrets: the texts are those of the broker.
package instanceevents
