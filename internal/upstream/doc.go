// Package upstream protects the services and the systems that they call from each other: the Provisioner, Gardener, Director and its token
// endpoint, and the release registry.
//
// A System limits the number of concurrent calls to one upstream and has a circuit breaker. Recovery probes an upstream whose circuit breaker
// is open, and resumes the operations that the outage has delayed. The package guarantees that an upstream that does not answer holds no
// worker for longer than a few seconds.
//
// A client uses a System through its Transport. Long polls and watches bypass the System: they last for minutes, so each would hold a slot
// without loading the upstream.
//
// The constants of circuitbreaker.go set when a circuit breaker opens and closes, those of system.go how long a call waits for a slot. The
// number of slots is a variable of the service. A new upstream needs a System, a Recovery among the parts of the service, and a row in
// docs/operator/metrics.md. The package uses the real clock; tests use testing/synctest.
package upstream
