// Package agent connects the runtime agent of a cluster to Compass and reports the state of its connection.
//
// The agent runs inside the cluster. It reads the address of Director's Connector and a one-time token from a Secret, and writes
// its state to a CompassConnection. docs/adr/0024 explains the contents of the Secret. The package decides when to write the
// Secret and interprets the state; package clusteraccess makes the calls into the cluster.
//
// Guarantees: a step that runs again after a crash neither uses a second token nor removes the new connection, and a replica
// that lost its lease does not overwrite a newer configuration. Options.Connected adds stages that run after the agent has
// connected.
package agent
