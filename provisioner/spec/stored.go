package spec

import (
	"encoding/json"
	"fmt"
)

// version is the version of the stored form that Encode writes.
const version = 1

// stored is an order in the database. Version 1 is written without its number, as it was before versions existed: the same order
// is the same text in old and new rows, and comparing texts finds an order that is sent again.
type stored struct {
	Runtime

	Version int `json:"version,omitempty"`
}

// Encode returns the order in the form in which it is stored.
func Encode(runtime Runtime) (json.RawMessage, error) {
	text, err := json.Marshal(stored{Runtime: runtime})
	if err != nil {
		return nil, fmt.Errorf("encoding an order: %w", err)
	}

	return text, nil
}

// Decode reads a stored order. It fails on a version that is newer than this program.
func Decode(text json.RawMessage) (Runtime, error) {
	var found stored
	if err := json.Unmarshal(text, &found); err != nil {
		return Runtime{}, fmt.Errorf("decoding an order: %w", err)
	}

	if found.Version > version {
		return Runtime{}, fmt.Errorf("decoding an order: its version %d is newer than version %d of this Provisioner",
			found.Version, version)
	}

	return found.Runtime, nil
}
