// Package deprovisioning is the broker's process that removes the runtime of a service instance and then the instance, and the one that
// removes the runtime and keeps the instance: a step a file, a step a stage.
package deprovisioning
