// Package gardener is the Provisioner's view of Gardener: Shoots that are applied, read, removed and watched, admin kubeconfigs
// made when they are needed, and what Gardener says about its work in terms that the engine understands.
package gardener
