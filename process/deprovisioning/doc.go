// Package deprovisioning is the broker's process that removes the runtime of a service instance and then the instance: a step
// a file, a step a stage.
package deprovisioning
