// Package sandbox runs everything on one machine: the broker, the Provisioner, a garden, and a simulated Director with agents. Its data is in
// one folder and survives every restart.
//
// The garden is package fakegarden by default, or the local garden (test/garden) as a process. A setting is a field of Config; what a service
// needs for the sandbox is in Config.broker and Config.provisioner.
package sandbox
