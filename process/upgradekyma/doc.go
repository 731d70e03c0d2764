// Package upgradekyma contains the broker's process that upgrades Kyma on the runtime of a service instance. Each step has its
// own file, and process.go orders the steps.
//
// The system that has installed Kyma on the runtime also upgrades it. After the Provisioner or the Reconciler has installed the
// new version, the process stores it in the instance's row. For Lifecycle Manager, the process applies the Kyma resource with the
// plan's current channel and template.
//
// A rollback is an upgrade in which the Provisioner reinstalls the Kyma version that the last upgrade replaced.
package upgradekyma
