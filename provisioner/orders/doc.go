// Package orders accepts operations on runtimes and reports the status of both. It is the service behind the GraphQL API and
// knows no GraphQL.
//
// Nothing is called in Gardener to accept an operation: the runtime, the operation and the idempotency key are rows of one
// transaction, and the answer is sent after the commit. Systems that may refuse an order (Director, the release registry)
// are asked before the transaction. Each request has a file; Service.change accepts all operations on an existing runtime but its
// removal.
package orders
