// Package orders accepts operations on runtimes, and reports the status of operations and runtimes. It is the service behind
// the GraphQL API, but does not depend on GraphQL.
//
// To accept an operation, the service writes the runtime, the operation, the idempotency key and the audit entry in one
// transaction, and responds after the commit. The engine changes Gardener later, on any replica. Systems that may reject a request
// (Gardener, Director and the release registry) are called before the transaction. A crash at any point therefore leaves either an
// accepted operation or none, and a client that repeats its request with the same key gets the same operation. An adoption is
// different: it patches the Shoot before the transaction and accepts no operation, and a repeated request completes it.
//
// Each kind of request has its own file. A new operation on an existing runtime is a method that calls Service.change with an
// edit; creations, removals and adoptions have their own transactions.
package orders
