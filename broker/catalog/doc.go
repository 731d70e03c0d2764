// Package catalog defines the service and its plans: the parameters of orders and updates, their rules and their
// defaults. It reads YAML files, by default from package resources, checks them as a whole and reloads them when
// they change.
//
// A loaded catalog is consistent: every plan can be ordered with only its required parameters, each default lies
// within its bounds, and all references between files are valid. The loaded content never changes; a reload replaces
// it as a whole, and requests in progress keep their plan. The package accesses neither databases nor clusters, so
// the same order with the same files and options always has the same result.
//
// A new plan needs a file in plans/ and an entry in catalog.yaml. A new provider needs a file in providers/. A new parameter
// needs a schema in parameters.yaml, a field in parameters.go and a field in environment.Cluster. Rules that a JSON schema cannot
// express belong in resolve.go.
package catalog
