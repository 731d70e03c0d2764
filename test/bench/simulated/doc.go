// Package simulated has the broker's upstreams: a Provisioner with the real GraphQL schema, whose runtimes are ready at once or after a given
// time, and the API servers of these runtimes. It counts calls.
package simulated
