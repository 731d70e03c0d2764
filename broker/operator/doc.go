// Package operator serves the broker's operator API: the endpoints for runtimes, bindings, the catalog, the expiry of instances,
// and kubeconfigs. Package operatorserver has the rest, which the Provisioner serves too: routes with their roles, operations,
// interventions and the audit log.
//
// The package guarantees that lists do not decrypt requests of instances.
//
// The usual change is a new endpoint: see docs/contributor/add-an-operator-endpoint.md.
package operator
