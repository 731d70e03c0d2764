// Package broker serves the Open Service Broker API 2.17, with one file for each endpoint. Package environment
// has the domain, package catalog the plans and their parameters.
//
// A request that starts work is decided in one transaction, which stores the instance or binding together with
// the operation. The response follows the commit, and the engine does the work. The package guarantees:
//
//   - A response 202 names an operation that is in the database. A crash before the commit leaves nothing
//     behind.
//   - A repeated request finds the operation of the first one and starts no other work.
//   - Concurrent requests for one instance are decided one after another: each locks or touches the instance's
//     row first. A request that loses against a unique index is decided again, with the winner's rows in view.
//   - No response and no log line contains a secret, except for the kubeconfig of a binding in its own
//     response.
//
// An endpoint receives a request whose IDs, query and body were read (request.go), decides, and returns a
// response or an error.
//
// The routes exist under /v2, /oauth/v2 and /oauth/{region}/v2, where region is the platform's. An error
// response needs an entry in error_catalog.yaml, a description for users a constant in errors.go.
package broker
