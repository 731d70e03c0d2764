// Package objectdiff compares objects by their fields: it lists the fields that a write would change, one line for each.
package objectdiff
