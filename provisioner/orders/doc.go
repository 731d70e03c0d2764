// Package orders accepts operations on runtimes, and reports the status of operations and runtimes. It is the service behind
// the GraphQL API, but does not depend on GraphQL.
//
// To accept an operation, the service writes the runtime, the operation, the idempotency key and the audit entry in one
// transaction, and responds after the commit. It does not change anything in Gardener: the engine does that later, on any
// replica. Systems that may reject a request (Director, the release registry, and Gardener for a hibernation) are called before
// the transaction. A crash at any point therefore leaves either an accepted operation or none, and a client that repeats its
// request with the same key gets the same operation.
//
// Each kind of request has its own file. A new operation on an existing runtime is a method that calls Service.change with an
// edit; creations and removals have their own transactions.
package orders
