// Package scheme knows the kinds of objects that the local garden stores: Gardener's and the few of Kubernetes beside them.
package scheme
