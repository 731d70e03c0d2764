// Package objectdiff compares two objects field by field and lists the fields that a write would change.
package objectdiff
