// Package jobs runs the periodic work of the broker that removes something, such as the expiry of instances. One replica at a
// time runs a job. If more items are due than the limit of the job, a run changes nothing until an operator confirms it. A wrong
// configuration or a wrong response of another system therefore cannot remove all instances.
//
// The package that does the work defines the job, in a function that returns a Job. To add one, append it to the list in
// broker/service/jobs.go, and describe it in docs/operator/jobs.md.
package jobs
