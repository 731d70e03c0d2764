// Package objectdiff compares objects by their fields: it lists what a later write changes, as one line for each field.
package objectdiff
