// Package applier installs objects on clusters by server-side apply, and removes them. Each owner of objects has an inventory in
// Secrets of the cluster, which lists the installed objects and records the progress, so any replica can continue the work of
// another replica.
//
// The inventory is in the same cluster as the objects, even if the owner itself is a resource in another cluster, the hub. A
// backup of the cluster therefore contains both, and they match after a restore. If the hub is restored or replaced, no objects
// are forgotten. The storage of the hub does not grow with the number of objects, and a deleted cluster leaves nothing behind in
// the hub.
//
// Invariants:
//
//   - The inventory contains an object before the object is applied, so a crash leaves no unrecorded object.
//   - An object that another owner holds, or that was installed by somebody else, is not changed. Owner.adopts defines the exceptions.
//   - Only objects with the owner's labels are deleted. Objects of other owners are preserved, and so are namespaces that contain
//     them.
//   - Writing the inventory fails if another replica has changed the inventory since it was read.
//
// kstatus determines whether an object is ready; exceptions are in health.go. The order of kinds is in apply.go. A new rule about
// deletions belongs in prune.go (upgrades), remove.go (uninstallations) or namespaces.go.
package applier
