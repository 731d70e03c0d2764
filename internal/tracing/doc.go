// Package tracing sends OpenTelemetry spans of requests and of the calls that they cause, across services. Package enginetelemetry adds the
// spans of operations.
//
// A trace starts with a client's request, or continues the client's own trace. An operation stores its trace (Carry), so the trace continues
// after a restart and on another replica. Attributes name operations, instances and steps, never contents of requests or responses. Without
// an endpoint tracing is off: New returns nil, and every method of a nil Tracing may be called.
//
// Receive and Begin are the server side, Transport is the client side. Another system is traced by wrapping its client's transport.
package tracing
