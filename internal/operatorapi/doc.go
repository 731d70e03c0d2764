// Package operatorapi is the contract of the operator API: openapi.yaml and the types generated from it, which
// the broker writes and its clients read. It has no behaviour.
//
// The package guarantees that server, client and description agree: the routes and handler signatures of
// broker/operator and the methods of ebctl's client are generated from the same file. A change of the API
// starts in openapi.yaml; docs/contributor/add-an-operator-endpoint.md lists the steps.
package operatorapi

import _ "embed" // openapi.yaml

//go:generate go tool oapi-codegen --config types.yaml openapi.yaml

// Description is openapi.yaml, as the broker serves it at /openapi.yaml.
//
//go:embed openapi.yaml
var Description []byte
