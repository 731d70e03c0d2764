// Package applier installs plans by server-side apply and keeps an inventory of the installed objects, and of its progress, in Secrets on the
// cluster itself, so that any replica continues where another one stopped.
//
// Invariants: an object is in the inventory before it is applied; only objects with LabelInstallation are deleted; the inventory is written
// only if nobody has changed it since it was read. The readiness of objects is that of kstatus; rules of our own are in health.go, the
// order of kinds is in apply.go.
package applier
