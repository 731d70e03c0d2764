// Package service assembles the Provisioner from its configuration: the database, the clients of Gardener and Director, the
// engine, the API, and the background jobs.
//
// New builds a service and binds its addresses without a call to Gardener, Director or the release registry: a replica can start
// while any of them is down. It refuses settings that could only fail later, in the middle of an operation.
//
// Config declares the variables; docs/operator/configuration.md is generated from it. Parts holds everything that the processes
// call: tests replace it to inject faults. A new background job is a lifecycle.Part in assembly.build, a new upstream system a
// call of assembly.guard.
package service
