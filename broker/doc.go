// Package broker serves the Open Service Broker API 2.17, one file an endpoint.
//
// Requests that start work are decided in one transaction, which stores the instance or binding together with the operation. The answer
// follows the commit, and the engine does the work. Repeated requests find the same operation; concurrent ones for the same instance are
// serialized by its row. Package environment has the domain, package catalog the plans and their parameters.
//
// The routes exist under /v2, /oauth/v2 and /oauth/{region}/v2, where region is the platform's. An error response needs an entry in
// error_catalog.yaml, a description for users a constant in errors.go.
package broker
