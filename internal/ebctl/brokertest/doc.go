// Package brokertest is a broker for tests of ebctl: it speaks the contracts of Open Service Broker and of the operator API, checks
// that its caller does, and tells of operations whatever its scenario says. With it comes a clock that nobody waits for.
package brokertest
