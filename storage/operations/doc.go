// Package operations stores the engine's tables: operations, the attempts of their steps, and their timelines. Broker and
// provisioner each have these tables in their own database. Store is the engine's process.Store, and what the services accept
// and read operations with.
package operations
