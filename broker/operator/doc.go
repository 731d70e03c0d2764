// Package operator serves the operator API. It lists runtimes, operations, bindings and audit entries, carries out
// the interventions cancel, retry and skip, expires instances, and issues kubeconfigs.
//
// The API is described in internal/operatorapi/openapi.yaml. The file routes.gen.go is generated from it. It
// contains the routes, with their roles and query parameters, and the interface that api implements. The package
// guarantees:
//
//   - A route checks the user and the role before its endpoint runs, and records rejected changes in the audit log.
//     Routes with the role none are public, and their responses contain no secrets.
//   - An operation changes only in a transaction that also writes the audit log. If the entry cannot be written,
//     nothing changes.
//   - Lists do not decrypt the requests of instances, and read at most maxPageSize entries.
//
// The usual change is a new endpoint: see docs/contributor/add-an-operator-endpoint.md.
package operator

//go:generate go tool oapi-codegen --config routes.yaml ../../internal/operatorapi/openapi.yaml
