// Package operator serves the broker's operator API: the endpoints for runtimes and their kubeconfigs, bindings, leftovers,
// orchestrations, jobs, quotas, webhooks, events, platforms, cloud accounts and the catalog. Package operatorserver contains the
// parts that the Provisioner also serves: routes with their roles, operations, interventions and the audit log.
//
// Lists do not decrypt the requests of instances. The only exception is a list of runtimes whose query asks for versions.
//
// To add an endpoint, see docs/contributor/add-an-operator-endpoint.md.
package operator
