// Package simulator contains the parts that the simulated upstreams of the sandbox and of tests share: injected faults, a log of
// calls, tokens, and the page that shows all systems.
//
// The log of calls contains neither headers nor bodies, because both can contain credentials.
package simulator
