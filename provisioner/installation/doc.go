// Package installation says what is installed on a runtime and how far it is. A Releases makes a Plan of what an order names; an
// Installer carries the plan out on the cluster, a bounded piece of work at a time.
package installation
