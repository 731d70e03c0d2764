// Package replica assembles a service process from the parts that the broker and the Provisioner share: configuration, database,
// keys, TLS and authentication, tracing, the API server, and the status server with health and metrics.
//
// A service embeds Config in its configuration and Replica in its service type, adds its parts with Serve, and calls Run. Replica
// defines the order in which the parts start and stop; docs/operator/running.md describes the shutdown for operators. To add a
// setting to both services, add a field to Config.
package replica
