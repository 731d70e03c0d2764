// Package app puts the garden together: what the command line asks for becomes a control plane, a prepared project, a simulated gardenlet
// and its runtimes, until the garden is told to end.
package app
