// Package releases reads releases, which list components, their order and their manifests, and makes the plans of orders. A Store provides
// the releases: a folder, or a repository of an OCI registry. docs/operator/releases.md describes the layout of a release; release.go
// validates it, and a new field of release.yaml goes there.
package releases
