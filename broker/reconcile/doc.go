// Package reconcile compares the instances of the broker with the runtimes of the Provisioner. It restores the rows of instances
// that the database has lost, for example in a point-in-time restore. Its report also contains the differences that the
// Provisioner finds between its runtimes, Gardener and Director.
//
// The Provisioner stores a copy of each instance as client data of its runtime, so a lost row can be restored from the
// Provisioner. A restoration also records the objects that the instance may have in other systems, if their names can be derived, so
// that the deletion of the instance removes them. The package never changes runtimes or credentials: for these, a difference lists the
// commands that an operator can run.
//
// Deleted instances stay deleted: the runtime of a leftover is neither reported as a difference, while a cleanup has to remove it, nor
// restored as an instance.
//
// Objects with unfinished operations are not compared. The package reads the Provisioner's data before the rows, and treats
// operations that have ended since then as unfinished, so an object that is being created or deleted is not reported as a
// difference.
package reconcile
