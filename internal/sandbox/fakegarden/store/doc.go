// Package store is the storage behind an API server in memory: it plugs into controller-runtime's fake client as its object tracker and
// gives it what that lacks to be used for more than a unit test.
//
// Every change passes Rules that complete or refuse it, is written to a file before anyone sees it, and gets a resource version that
// orders it among all changes, so that list and watch fit together without a gap. What was acknowledged survives the end of the process
// at any moment.
package store
