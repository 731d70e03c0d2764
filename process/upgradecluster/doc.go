// Package upgradecluster contains the broker's process that upgrades the cluster of a service instance. Each step has its own
// file, and process.go orders the steps.
//
// The Provisioner gets the new Kubernetes version along with all other values that can change, so an upgrade to the current
// version repairs a cluster that an earlier change left incomplete.
package upgradecluster
