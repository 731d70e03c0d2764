// Package operator serves the Provisioner's operator API: the endpoints for runtimes. Package operatorserver contains the part
// that the broker also serves: routes with their roles, operations, interventions and the audit log. In the terms of the API, a
// runtime is an instance, and its Shoot's name is the instance's name.
//
// The package guarantees that lists decrypt no configuration, and that no response contains a secret.
//
// docs/contributor/add-an-operator-endpoint.md describes the usual change.
package operator
