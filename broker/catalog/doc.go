// Package catalog has the service and its plans: the parameters that orders and updates may have, their rules
// and defaults. It is read from YAML files, by default those of package resources, checked as a whole, and
// reloaded when they change.
//
// A loaded catalog is consistent: every plan can be ordered without parameters, each default lies within its
// bounds, and all references between files are valid. A catalog never changes after loading; a reload replaces
// it, and requests in progress keep the plan that they have. The package reads neither databases nor
// clusters, so the same order with the same files always gives the same result.
//
// A new plan is a file in plans/, a new provider one in providers/. A new parameter needs a schema in
// parameters.yaml, a field in parameters.go and a field in environment.Cluster; a rule that a JSON schema
// cannot express belongs in resolve.go.
package catalog
