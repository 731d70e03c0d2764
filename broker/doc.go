// Package broker serves the Open Service Broker API 2.17, with one file for each endpoint. Package environment contains the
// domain types, and package catalog contains the plans and their parameters.
//
// Each request that starts work is decided in one transaction, which stores the instance or binding together with
// the operation. The broker responds after the commit, and the engine does the work. The package guarantees:
//
//   - The operation in a 202 response is in the database. A crash before the commit leaves nothing behind.
//   - A repeated request returns the operation of the first request and starts no other work.
//   - Concurrent requests for the same instance are decided one after another: each locks or touches the row of
//     the instance first. A request that violates a unique index is decided again with the rows that the other
//     request stored.
//   - Responses and log lines contain no secrets, except for the kubeconfig in responses to bind requests and to
//     fetches of bindings.
//
// Most endpoints receive a request whose IDs, query and body were already read (request.go). They return a response
// or an error.
//
// All routes exist under /v2, /oauth/v2 and /oauth/{region}/v2, where region is the region of the platform. A new
// error response needs an entry in error_catalog.yaml. Descriptions for users are constants in errors.go.
package broker
