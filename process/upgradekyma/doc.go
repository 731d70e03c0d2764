// Package upgradekyma contains the broker's process that upgrades the Kyma of a service instance. Each step has its own file, and
// process.go orders the steps.
//
// The Provisioner installs Kyma, so the process has no steps for the Reconciler. The row of the instance gets the new version once
// the Provisioner has installed it.
package upgradekyma
