// Package upstream makes the calls to the systems that the services depend on: the Provisioner, Gardener, Director and its token endpoint,
// the release registry. A System limits how many calls run at the same time and has a circuit breaker. Recovery probes a system whose
// circuit breaker is open and resumes the operations that the outage held up.
//
// A System works on HTTP requests: make its Transport that of the client. Requests that wait for news (long polls, watches) bypass it: they
// last for minutes, each replica has one, and they would hold a slot all the time.
//
// The limits are here, in circuitbreaker.go (when it opens and closes) and system.go (how long a call waits for a slot); the number of
// slots comes from the configuration of the service. A new upstream system is a System, a Recovery among the parts of the service, and a
// row in docs/operator/metrics.md.
//
// Time is that of the process; tests use testing/synctest.
package upstream
