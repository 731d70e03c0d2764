// Package simulated plays what the broker calls: a Provisioner, by the real GraphQL schema, whose runtimes are ready at once or after a
// given time, and the API servers of these runtimes. It counts the calls.
package simulated
