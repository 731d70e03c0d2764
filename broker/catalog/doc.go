// Package catalog defines the service and its plans: the parameters of orders and updates, their rules and their
// defaults. They are read from YAML files, by default those of package resources. The files are checked as a whole
// and reloaded when they change.
//
// A loaded catalog is consistent: every plan can be ordered without parameters, each default lies within its
// bounds, and all references between files are valid. A catalog never changes after loading; a reload replaces it,
// and requests in progress keep their plan. The package accesses neither databases nor clusters, so the same order
// with the same files always has the same result.
//
// A new plan is a file in plans/, a new provider a file in providers/. A new parameter needs a schema in
// parameters.yaml, a field in parameters.go and a field in environment.Cluster. Rules that a JSON schema cannot
// express belong in resolve.go.
package catalog
