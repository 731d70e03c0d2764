// Package operatorapi is the contract of the operator API: openapi.yaml and the Go types generated from it.
// The package contains no logic.
//
// The broker and the Provisioner both serve the API. The routes and handler signatures of internal/operatorapi/operatorserver and
// the methods of ebctl's client are generated from the same file, so servers, client and description always agree. To change the
// API, edit openapi.yaml first; docs/contributor/add-an-operator-endpoint.md lists the steps.
package operatorapi

import _ "embed" // openapi.yaml

//go:generate go tool oapi-codegen --config types.yaml openapi.yaml

// Description is the content of openapi.yaml. Both services serve it at /openapi.yaml.
//
//go:embed openapi.yaml
var Description []byte
