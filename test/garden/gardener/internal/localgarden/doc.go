// Package localgarden assembles the local garden from its parts: a control plane, projects with seed objects, a simulated
// gardenlet for each project and the API servers of runtimes. It runs them until its context ends. The next garden in the same folder continues
// with the same data.
//
// Add a flag in [Parse]. The rights of the services, and objects that must exist before the services start, are in project.go.
package localgarden
