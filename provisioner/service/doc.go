// Package service assembles the Provisioner from its configuration: the database, the clients of Gardener and Director, the
// engine, the API, and the background jobs.
//
// Config declares the variables; docs/operator/configuration.md is generated from it. Parts holds everything that the processes
// call: tests replace it to inject faults. A new background job is a lifecycle.Part in Service.build.
package service
