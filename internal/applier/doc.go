// Package applier installs objects on clusters by server-side apply, and removes them. Each owner of objects has an inventory in
// Secrets of the cluster, which lists the installed objects and records the progress, so any replica can continue the work of
// another replica.
//
// The inventory of a cluster's objects is in that cluster, also for an owner that another cluster, the hub, describes. A backup of
// the cluster then contains both, so they agree after it is restored. A hub that is restored or replaced forgets no object, the size
// of its storage does not depend on the number of objects, and a cluster that is deleted leaves nothing behind.
//
// Invariants:
//
//   - The inventory contains an object before the object is applied, so a crash leaves no unrecorded object.
//   - An object that another owner holds, or that was installed by somebody else, is not changed. Owner.adopts has the exceptions.
//   - Only objects with the labels of the owner are deleted. Objects of other owners are preserved, and so are namespaces that contain
//     them.
//   - A write of the inventory fails if another replica has changed the inventory since it was read.
//
// kstatus determines whether an object is ready; exceptions are in health.go. The order of kinds is in apply.go. A new rule
// about deletions belongs in prune.go (upgrades), remove.go (uninstallations) or namespaces.go.
package applier
