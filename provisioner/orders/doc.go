// Package orders accepts operations on runtimes and reports the status of both. It is the service behind the GraphQL API and
// knows no GraphQL.
//
// To accept an operation, the service writes the runtime, the operation, the idempotency key and the audit entry in one
// transaction, and answers after the commit. It does not change anything in Gardener: the engine does that later, on any
// replica. Systems that may refuse a request (Director, the release registry, Gardener for a hibernation) are called before the
// transaction. So a crash at any point leaves either an accepted operation or none, and a client that repeats its request with
// the same key gets the same operation.
//
// Each request has a file. A new operation on an existing runtime is a method that calls Service.change with an edit; creations
// and removals have their own transactions.
package orders
