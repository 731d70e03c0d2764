// Package localgarden assembles the local garden: a control plane, a seeded project, the simulated gardenlet and its runtimes. It runs them
// until its context ends.
package localgarden
