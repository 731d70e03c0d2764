// Package tracing exports OpenTelemetry spans of requests and of the calls that the requests cause, across services. Package enginetelemetry
// adds the spans of operations.
//
// A trace starts with a client's request, or continues the trace of the client. Operations store their trace with Carry, so a trace continues
// after a restart and on other replicas. Attributes name operations, instances and steps, and never have contents of requests or responses.
// Without an endpoint, tracing is off: New returns nil, and all methods of a nil *Tracing except Start and Sampled do nothing.
//
// Receive and Begin trace the server side of a request, Transport the client side. To trace calls to another upstream, wrap the transport of
// its client.
package tracing
