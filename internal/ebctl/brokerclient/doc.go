// Package brokerclient calls a broker or the Provisioner behind it. It manages service instances and bindings through the Open
// Service Broker API 2.17 and uses the operator API, which both services have, for everything else. The methods for the operator API
// are generated from internal/operatorapi/openapi.yaml into operator.gen.go, except those that need headers or a stream.
//
// Every call of a Client except FollowEvents ends within the configured timeout and reads at most 8 MiB. A call fails with an
// AnswerError if the service rejects the request, and with an UnreachableError if it does not respond. The client never repeats a
// request.
//
// To add a method for a new endpoint of the operator API, run the code generator. Methods for the Open Service Broker API are in
// osb.go.
package brokerclient

//go:generate go tool oapi-codegen --config operator.yaml ../../operatorapi/openapi.yaml
