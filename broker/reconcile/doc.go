// Package reconcile compares the instances of the broker with the runtimes of the Provisioner. It restores rows of instances that
// were lost when a part of the database was lost, for example in a point-in-time restore. Its report also contains the
// differences that the Provisioner finds between its runtimes, Gardener and Director.
//
// The broker stores each instance with the runtime, as client data, so a lost row can be restored from the Provisioner. The
// package never changes runtimes or credentials: for these, a difference lists the commands that an operator can run.
//
// Objects with unfinished operations are not compared. The Provisioner is read before the rows, and operations that have ended
// since then count as unfinished, so an object that is being created or deleted is not reported as a difference.
package reconcile
