// Package operator serves the operator API: it lists runtimes, operations, bindings and audit entries, lets operators cancel, retry and
// skip, and hands out kubeconfigs.
//
// The API is internal/operatorapi/openapi.yaml. The routes with their roles and query parameters, and the interface that api
// implements, are generated from it into routes.gen.go. Every route but those with x-role none authenticates the user, checks the role
// and records rejected changes in the audit log before its endpoint runs. Endpoints read from the database's reader, and change
// operations only in a transaction that also writes the audit log.
//
// docs/contributor/add-an-operator-endpoint.md describes the usual change.
package operator

//go:generate go tool oapi-codegen --config routes.yaml ../../internal/operatorapi/openapi.yaml
