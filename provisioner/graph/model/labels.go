package model

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/99designs/gqlgen/graphql"
)

// ProviderSpecificConfig is one of the provider types of package spec. Resolvers return it for the GraphQL union.
type ProviderSpecificConfig any

// UnmarshalLabels accepts a JSON object and nothing else.
func UnmarshalLabels(value any) (map[string]any, error) {
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("labels must be a JSON object, not %T", value)
	}

	return object, nil
}

// MarshalLabels writes labels as JSON. Values that JSON cannot represent become null.
func MarshalLabels(labels map[string]any) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		text, err := json.Marshal(labels)
		if err != nil {
			text = []byte("null")
		}

		// The writer is a buffer of gqlgen: writing to it does not fail.
		_, _ = w.Write(text)
	})
}
