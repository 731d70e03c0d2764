// Package service assembles the broker from its parts: configuration, stores, engine, feed, background work and handlers. New variables go into
// Config, new background work into the parts that Service runs, and new kinds of operations into Processes.
package service
