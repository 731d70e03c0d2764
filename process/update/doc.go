// Package update has the broker's process that changes the runtime of a service instance. Each step is a file; process.go orders them.
// The instance's row changes only once the runtime has changed.
package update
