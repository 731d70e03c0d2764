// Package upstream guards the calls of the services to other systems, such as the Provisioner, Gardener, Director and the release
// registry. It keeps an outage of a system from blocking a service, and a service from overloading a system.
//
// A System limits the number of concurrent calls to one upstream and has a circuit breaker. A Recovery probes an upstream during
// an outage, and resumes the delayed operations afterwards. Once an upstream has stopped responding, calls to it fail immediately
// instead of blocking workers until their timeouts.
//
// A client uses a System through its Transport. Long polls and watches bypass the System: they last for minutes, so each would
// occupy a slot without putting load on the upstream.
//
// The constants in circuitbreaker.go set when a circuit breaker opens and closes; the constant in system.go sets how long a call
// waits for a slot. An environment variable of the service sets the number of slots. To add an upstream, create a System and add
// its name to docs/operator/metrics.md. If operations wait for the upstream, also add a Recovery to the parts of the service. The
// circuit breaker uses the real clock; tests run it in fake time with testing/synctest.
package upstream
