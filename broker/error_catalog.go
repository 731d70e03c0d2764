package broker

import (
	_ "embed" // error_catalog.yaml
	"fmt"

	"sigs.k8s.io/yaml"
)

//go:embed error_catalog.yaml
var errorCatalog []byte

// DocumentedError documents an error response: its causes and the remedy. The page docs/user/errors.md is generated
// from all documented errors. Tests check that every error response is documented.
type DocumentedError struct {
	Status int `json:"status"`
	// Code is the error field of the response, or empty if the response has no such field.
	Code string `json:"code"`
	// When describes the causes of the error.
	When string `json:"when"`
	// Remedy says what the client or its operator can do about the error.
	Remedy string `json:"remedy"`
}

// ErrorCatalog returns the documented error responses of the Open Service Broker API, read from error_catalog.yaml.
// A response with a new pair of status and code needs an entry there.
func ErrorCatalog() ([]DocumentedError, error) {
	var catalog []DocumentedError
	if err := yaml.UnmarshalStrict(errorCatalog, &catalog); err != nil {
		return nil, fmt.Errorf("reading error_catalog.yaml: %w", err)
	}

	return catalog, nil
}
