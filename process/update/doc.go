// Package update is the broker's process that changes the runtime of a service instance: a step a file. What the instance is stays as
// it is until all has succeeded.
package update
