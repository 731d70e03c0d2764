// Package reconcile compares the instances of the broker with the runtimes of the Provisioner, and restores rows of instances that
// were lost with a part of the database, for example by a point-in-time restore. Its report also contains the differences that the
// Provisioner finds, between its runtimes, Gardener and Director.
//
// The broker stores each instance as client data with the runtime, so a lost row can be restored from the Provisioner. The package
// never changes a runtime or credentials: for these, a difference has the commands that an operator can run.
//
// Objects with unfinished operations are not compared. The Provisioner is read before the rows, and operations that have ended since
// then count as unfinished. So an object that is being created or deleted is not a difference.
package reconcile
