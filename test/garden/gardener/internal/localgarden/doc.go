// Package localgarden assembles the local garden from its parts: a control plane, a seeded project, the simulated gardenlet and
// the API servers of runtimes. It runs them until its context ends, and leaves a folder with which the next garden continues.
//
// A flag is added in [Parse]. Rights of the services in the garden, and the objects that must exist before they start, are in
// project.go.
package localgarden
