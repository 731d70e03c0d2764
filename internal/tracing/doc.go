// Package tracing exports OpenTelemetry spans of requests and of the calls that the requests cause, across services. Package
// process/telemetry adds the spans of operations.
//
// A request starts a new trace or continues the trace of the client. Operations store the result of Traceparent, so a trace
// continues after a restart and on other replicas. Attributes identify operations, instances and steps, and never contain parts
// of requests or responses. Without an endpoint, tracing is off: New returns nil, and all methods of a nil *Tracing except Start
// and Sampled do nothing.
//
// Receive and Begin trace the server side of a request; Transport traces the client side. To trace calls to another upstream,
// wrap the transport of its client.
package tracing
