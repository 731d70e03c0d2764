// Package update contains the broker's process that changes the runtime of a service instance. Each step has its own file, and
// process.go orders the steps.
//
// The change is part of the operation's data (environment.Update). The instance's row changes only after the runtime has
// changed, so after a failed update the row still describes the actual runtime. A new parameter that changes the runtime needs
// no new step, because upgradeShoot sends all target values to the Provisioner.
package update
