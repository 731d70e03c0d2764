// Package shoot turns the order of a cluster into the Shoot that Gardener makes it of. It is pure: the same order and options
// give the same Shoot, and nothing is read or written. An order is expected to have passed package validation.
package shoot
