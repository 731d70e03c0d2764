// Package content serves the content of Bundles to authorized clients and accepts uploads. It also contains the client for both.
//
//	GET /bundles/<name>.tgz   the content of an unpacked Bundle, also HEAD and ranges; the ETag is its digest
//	PUT /uploads/<name>.tgz   the content of a Bundle with the source upload
//
// The API server of the cluster authenticates the bearer token of each request with a TokenReview, and authorizes the path and the
// method with a SubjectAccessReview. In resources/rbac, the ClusterRole bundle-reader permits downloads, and bundle-uploader
// permits uploads.
package content
