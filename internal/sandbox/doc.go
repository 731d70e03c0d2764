// Package sandbox runs the whole system on one machine: the broker, the Provisioner, the bundle provisioner, a garden, a
// simulated Director with runtime agents, and the other simulated systems that the broker calls. Its data is in one folder and
// survives every restart, except the objects of those other systems, which are in memory.
//
// The garden is package fakegarden by default, or the local garden (test/garden) as a separate process. To add a setting, add a
// field to Config. Config.broker and Config.provisioner set the configuration of the two services where it differs from the
// defaults.
package sandbox
