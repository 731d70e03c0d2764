// Package applier installs plans by server-side apply and uninstalls them. An inventory in Secrets of the cluster lists the
// installed objects and records the progress, so any replica can continue the work of another replica.
//
// Invariants:
//
//   - The inventory contains an object before the object is applied, so a crash leaves no unrecorded object.
//   - Only objects with LabelInstallation are deleted. Objects of other owners are preserved, and so are namespaces that contain
//     them.
//   - A write of the inventory fails if another replica has changed the inventory since it was read.
//
// kstatus determines whether an object is ready; exceptions are in health.go. The order of kinds is in apply.go. A new rule
// about deletions belongs in prune.go (upgrades), remove.go (uninstallations) or namespaces.go.
package applier
