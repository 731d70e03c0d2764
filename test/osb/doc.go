// Package osb tests the broker against the Open Service Broker API 2.17, over HTTP. matrix_test.go lists what the specification requires of
// a broker, row by row, with the test of each row. The rows share one environment: broker and Provisioner as services, and an in-memory
// garden. Every response is also validated against the official OpenAPI description.
//
// Three more tests look for what the rows miss: a client library of Kubernetes (client_library_test.go), a model of the whole API that
// random requests are compared with (model_test.go), and fuzz targets (fuzz_test.go).
package osb
