package secret

import (
	"fmt"
	"io"
)

// Mask is the printed form of every secret, in logs, errors and JSON.
const Mask = "***"

// String is a text that prints and encodes as Mask. Reveal returns the text. Keep it out of unexported fields and map keys: fmt prints the
// former, and encoding/json writes the latter, without calling its methods.
type String string

// String returns Mask.
func (String) String() string { return Mask }

// GoString returns Mask, for %#v.
func (String) GoString() string { return Mask }

// Format writes Mask for every verb. Without it, fmt would show the value for verbs that do not fit a string.
func (String) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, Mask) }

// MarshalText returns Mask, for JSON, YAML and log formatters. To store a secret, seal it.
func (String) MarshalText() ([]byte, error) { return []byte(Mask), nil }

// Reveal returns the text.
func (s String) Reveal() string { return string(s) }

// Stored is a secret inside a document that is sealed as a whole. It prints as Mask, but its JSON is the text, so it must never be part of a
// response.
type Stored string

// String returns Mask.
func (Stored) String() string { return Mask }

// GoString returns Mask, for %#v.
func (Stored) GoString() string { return Mask }

// Format writes Mask for every verb.
func (Stored) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, Mask) }

// Reveal returns the text.
func (s Stored) Reveal() String { return String(s) }
