// Package replica assembles a service process from the parts that broker and Provisioner share: configuration, database, keys, TLS and
// authentication, tracing, the API server, and the status server with health and metrics.
//
// A service embeds Config in its configuration and Replica in its own type, adds its parts with Serve, and calls Run. Replica guarantees the
// order of the start and the stop; docs/operator/running.md describes the stop for operators. A setting of both services is a field of Config.
package replica
