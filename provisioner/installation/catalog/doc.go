// Package catalog keeps releases: what components there are, in which order, and of which manifests they are made. It makes the plans of
// orders. docs/operator/releases.md says how a release is laid out.
package catalog
