// Package validation finds what is wrong with an order for a runtime before anything is done for it. What it lets through,
// Gardener accepts, as far as that can be told without asking the cloud profile.
package validation
