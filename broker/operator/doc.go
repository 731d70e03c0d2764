// Package operator serves the broker's operator API: the endpoints for runtimes, bindings, the catalog, the expiry of instances,
// and kubeconfigs. Package operatorserver contains the parts that the Provisioner serves, too: routes with their roles,
// operations, interventions and the audit log.
//
// The package guarantees that lists do not decrypt requests of instances.
//
// To add an endpoint, see docs/contributor/add-an-operator-endpoint.md.
package operator
