// Package reconcile compares the runtimes of the Provisioner with the Shoots in Gardener and the registrations in Director, and
// restores rows that were lost with a part of the database, for example by a point-in-time restore.
//
// A Shoot contains the sealed row of its runtime, so the row can be restored from it. The package never changes a cluster or a
// registration. For a difference that requires such a change, it lists commands that an operator can run.
//
// Objects with unfinished operations are not compared, so an object that is being created or deleted is not a difference. The systems are
// read before the rows, and operations that have ended since then count as unfinished.
package reconcile
