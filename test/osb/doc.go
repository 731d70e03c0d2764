// Package osb holds the broker against the Open Service Broker API 2.17, over HTTP. matrix_test.go lists what the specification asks of a
// broker, row by row; each row has a test with its id. The rows run against a whole landscape: the broker and the Provisioner as
// services, and a garden in memory. Every answer is also validated against the official OpenAPI description.
//
// Beside the rows stand a client library that is not ours (foreign_test.go), a model of the whole surface that random requests are
// compared with (model_test.go), and fuzz targets (fuzz_test.go).
package osb
