// Package tracing has services tell OpenTelemetry what belongs together: a request, the operation that it orders, the attempts of its
// steps, and the calls that they make, also where the called system is another service of ours.
//
// A trace begins with the request of a client, or is the client's own. An operation keeps it (Carry), so it goes on after a restart
// and on another replica. An attribute names operations, instances and steps, and never what a request or an answer holds.
package tracing
