package broker

import (
	_ "embed" // error_catalog.yaml
	"fmt"

	"sigs.k8s.io/yaml"
)

//go:embed error_catalog.yaml
var errorCatalog []byte

// DocumentedError documents an error response and its remedy. The page docs/user/errors.md is generated from
// all of them, and tests check that no error response lacks one.
type DocumentedError struct {
	Status int `json:"status"`
	// Code is the field error of the response, empty if the protocol defines none.
	Code string `json:"code"`
	// When names the causes.
	When string `json:"when"`
	// Remedy says what the receiver of the response can do.
	Remedy string `json:"remedy"`
}

// ErrorCatalog returns the error responses of the Open Service Broker API, which error_catalog.yaml lists. A
// response with a new pair of status and code needs an entry there.
func ErrorCatalog() ([]DocumentedError, error) {
	var catalog []DocumentedError
	if err := yaml.UnmarshalStrict(errorCatalog, &catalog); err != nil {
		return nil, fmt.Errorf("reading error_catalog.yaml: %w", err)
	}

	return catalog, nil
}
