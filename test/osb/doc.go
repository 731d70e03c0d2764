// Package osb tests the broker against version 2.17 of the Open Service Broker API, over HTTP.
//
// matrix_test.go lists the requirements of the specification. Each requirement is a row with an ID, a level and a test.
// docs/contributor/osb-conformance.md explains the IDs. All rows share one environment: a broker, a Provisioner and a fake
// garden. Every response is also validated against the official OpenAPI description.
//
// Three more tests find errors that the rows miss. client_library_test.go uses the Kubernetes client library, model_test.go
// compares the responses to random requests with a model of the API, and fuzz_test.go has fuzz targets.
//
// To add a requirement, add a line to matrix_test.go and a function whose name starts with row.
package osb
