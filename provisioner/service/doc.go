// Package service assembles the Provisioner from its configuration: the database, the clients of Gardener and Director, the
// engine, the API, and the background jobs.
//
// New builds a service and binds its addresses without a call to Gardener, Director or the release registry, so a replica can
// start while any of them is down. It rejects settings that would otherwise cause failures only later, in the middle of an
// operation.
//
// Config declares the variables; docs/operator/configuration.md is generated from it. Parts contains all systems that the
// processes call, and tests replace them to inject faults. Add a new background job as a lifecycle.Part in assembly.build, and a
// new upstream system with a call to assembly.guard.
package service
