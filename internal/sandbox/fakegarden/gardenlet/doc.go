// Package gardenlet plays Gardener's gardenlet: it turns Shoots into runtimes, with the status that a real gardenlet would write,
// in a time and with faults that can be chosen.
//
// It works against any API server that knows Gardener's types; what a runtime is, the Runtimes that it is given decide. All that it
// knows stands in the objects, so a gardenlet that was killed goes on where it was, and starts the API servers of the runtimes again.
package gardenlet
