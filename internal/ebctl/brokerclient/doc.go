// Package brokerclient calls a broker: service instances and bindings over Open Service Broker 2.17, everything else over the operator
// API, whose calls are generated from internal/operatorapi/openapi.yaml into operator.gen.go.
//
// Every call ends within the configured timeout, reads at most 8 MiB, and fails with an AnswerError or an UnreachableError if the broker
// rejects it or does not answer. No call is repeated.
package brokerclient

//go:generate go tool oapi-codegen --config operator.yaml ../../operatorapi/openapi.yaml
