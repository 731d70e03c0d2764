package model

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/99designs/gqlgen/graphql"
)

// ProviderSpecificConfig is the Go type of the GraphQL union of providers. It holds a spec.AWS, spec.Azure, spec.GCP or
// spec.OpenStack value, not a pointer.
type ProviderSpecificConfig any

// UnmarshalLabels reads a value of the Labels scalar. It accepts only a JSON object, whose values may be of any type.
func UnmarshalLabels(value any) (map[string]any, error) {
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("labels must be a JSON object")
	}

	return object, nil
}

// MarshalLabels writes labels as JSON, or null if a value cannot be encoded. gqlgen requires this function, although no response
// contains labels.
func MarshalLabels(labels map[string]any) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		text, err := json.Marshal(labels)
		if err != nil {
			text = []byte("null")
		}

		// Writes to gqlgen's buffer cannot fail.
		_, _ = w.Write(text)
	})
}
