package model

import (
	"encoding/json"
	"fmt"
	"io"
)

// Labels is a JSON object with values of any type.
type Labels map[string]any

// UnmarshalGQL takes a JSON object and nothing else.
func (l *Labels) UnmarshalGQL(value any) error {
	object, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("labels must be a JSON object, not %T", value)
	}

	*l = object

	return nil
}

// MarshalGQL writes the labels as JSON. What JSON cannot hold becomes null.
func (l Labels) MarshalGQL(w io.Writer) {
	text, err := json.Marshal(l)
	if err != nil {
		text = []byte("null")
	}

	// The writer is a buffer of gqlgen; an error of it has nowhere to go.
	_, _ = w.Write(text)
}
