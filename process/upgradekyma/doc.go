// Package upgradekyma contains the broker's process that upgrades the Kyma of a service instance. Each step has its own file, and
// process.go orders the steps.
//
// The system that has installed Kyma on the runtime also upgrades it. If that is the Provisioner or the Reconciler, the row of the instance
// gets the new version once it is installed. If it is Lifecycle Manager, the process applies the Kyma resource with the current channel and
// template of the plan.
//
// A rollback is an upgrade whose Provisioner reinstalls the Kyma that the last upgrade replaced.
package upgradekyma
