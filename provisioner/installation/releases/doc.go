// Package releases reads and validates Kyma releases, and makes plans for orders. A Store provides the releases: Folder or
// Registry. A Catalog caches them, because the content of a version never changes.
//
// docs/operator/releases.md describes the files of a release. release.go validates them; a new field of release.yaml belongs
// there, and its effect on plans in plan.go. An invalid release is rejected as a whole, and its error lists all problems.
package releases
