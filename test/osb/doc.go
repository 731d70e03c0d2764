// Package osb tests the broker against the Open Service Broker API 2.17, over HTTP. matrix_test.go lists the
// requirements of the specification on a broker, row by row, with the test of each row. The rows share one environment: broker and Provisioner as services, and an in-memory
// garden. Every response is also validated against the official OpenAPI description.
//
// Three more tests find errors that the rows miss: the client library of Kubernetes (client_library_test.go), a model of the whole
// API, compared with the responses to random requests (model_test.go), and fuzz targets (fuzz_test.go).
package osb
