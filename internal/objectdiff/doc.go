// Package objectdiff compares objects by their fields: it lists the fields that a later write changes, each as one line.
package objectdiff
