// Package sandbox runs the whole system on one machine: the broker, the Provisioner, a garden, and a simulated Director with
// runtime agents. Its data is in one folder and survives every restart.
//
// The garden is package fakegarden by default, or the local garden (test/garden) as a separate process. Add a setting as a field
// of Config. Settings of the broker and the Provisioner that the sandbox changes are in Config.broker and Config.provisioner.
package sandbox
