package spec

import (
	"encoding/json"
	"fmt"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// version is the version of the stored form that Encode writes.
const version = 1

// stored is the stored form of an order. Encode omits the version number if it is 1, because the oldest rows have no number.
// Equal orders therefore have equal encodings in old and new rows. Package orders compares the encodings to detect repeated
// orders.
type stored struct {
	Runtime

	Version int `json:"version,omitempty"`
}

// Encode returns the order in the stored form. Equal orders have equal encodings.
func Encode(runtime Runtime) (json.RawMessage, error) {
	text, err := json.Marshal(stored{Runtime: runtime})

	return text, failure.While(err, "encoding an order")
}

// Decode reads a stored order of any version up to the current one. It fails for a newer version, which a newer replica can
// write during a rolling upgrade or before a downgrade.
func Decode(text json.RawMessage) (Runtime, error) {
	var found stored
	if err := json.Unmarshal(text, &found); err != nil {
		return Runtime{}, fmt.Errorf("decoding an order: %w", err)
	}

	if found.Version > version {
		return Runtime{}, fmt.Errorf("decoding an order: its format version %d is newer than %d, the newest that this Provisioner can read",
			found.Version, version)
	}

	return found.Runtime, nil
}
