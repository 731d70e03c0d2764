// Package update has the broker's process that changes the runtime of a service instance. Each step is a file, and process.go
// orders them.
//
// The change is part of the operation's data (environment.Update). The instance's row changes only after the runtime has changed,
// so a failed update leaves the row as the runtime is. A new parameter that changes the runtime needs no new step: upgradeShoot
// sends the whole target to the Provisioner.
package update
