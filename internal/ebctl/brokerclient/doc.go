// Package brokerclient calls a broker: service instances and bindings over Open Service Broker 2.17, everything else over the operator
// API, whose calls are generated from internal/operatorapi/openapi.yaml into operator.gen.go.
//
// Every call ends within the configured timeout and reads at most 8 MiB. A call fails with an AnswerError if the broker rejects the request,
// and with an UnreachableError if the broker does not answer. The client never repeats a request.
//
// An endpoint of the operator API becomes a method when the code is generated again; an endpoint of the Open Service Broker API is a method
// in osb.go.
package brokerclient

//go:generate go tool oapi-codegen --config operator.yaml ../../operatorapi/openapi.yaml
