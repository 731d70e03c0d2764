// Package service assembles the broker from its parts: configuration, stores, engine, feed, background work and
// handlers.
//
// New checks the whole configuration before it opens the database. If a part fails, New releases all resources. A
// running service stops its parts in the reverse order of their start, so each part can use the earlier ones until
// it has ended.
//
// A new variable is a field of Config, with its default in DefaultConfig. New background work is a part in
// Service.build, and a new kind of operation is a process in Processes.
package service
