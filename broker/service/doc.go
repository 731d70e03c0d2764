// Package service assembles the broker from its parts: configuration, stores, engine, feed, background work and handlers.
//
// New checks the settings before it opens the database. If a part fails, New releases all resources. A running service stops its
// parts in the reverse order of their start, so each part can use the earlier ones until it has ended.
//
// To add a variable, add a field to Config and its default to DefaultConfig. To add background work, add a part in Service.build. To
// add a kind of operation, add its process in Processes.
package service
