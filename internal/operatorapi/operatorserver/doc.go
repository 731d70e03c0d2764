// Package operatorserver contains the parts of the operator API that the broker and the Provisioner share: routing with roles,
// list queries, operations with their timelines, the interventions cancel, retry and skip, and the audit log.
//
// internal/operatorapi/openapi.yaml defines the API. The routes with their roles and query parameters, and the interfaces that
// the services implement, are generated from this file into routes.gen.go. A service embeds API in its own type, adds the
// endpoints for its instances, and passes the routes of the type to NewHandler. The package guarantees:
//
//   - A route checks the user and the role before its endpoint runs, and records rejected changes in the audit log. Routes with
//     the role none are public, and their responses contain no secrets.
//   - An intervention changes an operation in a transaction that also writes the audit log. If the entry cannot be written,
//     nothing changes.
//   - The lists of this package return at most maxPageSize entries, and decrypt nothing.
//
// docs/contributor/add-an-operator-endpoint.md describes the usual change.
package operatorserver

//go:generate go tool oapi-codegen --config routes.yaml ../openapi.yaml
