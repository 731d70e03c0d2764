// Package agent connects the runtime agent, which runs inside of a runtime, to Compass (Director's Connector) and reports its connection.
// The agent reads address and one-time token from a Secret and writes its state into a CompassConnection. docs/adr/0024 explains the
// contents of the Secret. A new stage after the connection goes into Options.Connected.
package agent
