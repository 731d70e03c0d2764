// Package service assembles the broker from its parts: configuration, stores, engine, feed, background work and
// handlers.
//
// New checks the whole configuration before it opens the database, and releases everything if a part fails. A
// running service stops its parts in the opposite order of their start, so each part can use the earlier ones
// until it has ended.
//
// A new variable is a field of Config, with its default in DefaultConfig. New background work is a part in
// Service.build, and a new kind of operation a process in Processes.
package service
