// Package jobs runs the periodic work of the broker that removes something, such as the expiry of instances. One replica at a time runs a
// job. A run that would change more than the limit of its job changes nothing until an operator confirms it, so that a wrong
// configuration or a wrong list of another system cannot remove a fleet.
//
// A job is defined in the package that does its work, as a function that returns a Job. To add one, append it to the list in
// broker/service/jobs.go, and describe it in docs/operator/jobs.md.
package jobs
