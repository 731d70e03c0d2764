// Package operator serves the operator API: lists of runtimes, operations, bindings and audit entries; the
// interventions cancel, retry and skip; the expiry of instances; and kubeconfigs.
//
// The API is internal/operatorapi/openapi.yaml. The routes with their roles and query parameters, and the
// interface that api implements, are generated from the file into routes.gen.go. The package guarantees:
//
//   - A route checks the user and the role before its endpoint runs, and records rejected changes in the audit
//     log. Routes with the role none are public, and their responses contain no secrets.
//   - An operation changes only in a transaction that also writes the audit log. If the entry cannot be
//     written, nothing changes.
//   - Lists do not decrypt requests of instances, and read at most maxPageSize entries.
//
// docs/contributor/add-an-operator-endpoint.md describes the usual change.
package operator

//go:generate go tool oapi-codegen --config routes.yaml ../../internal/operatorapi/openapi.yaml
