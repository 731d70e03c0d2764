package secret

import (
	"fmt"
	"io"
)

// Mask replaces every secret in logs, errors and JSON, including empty secrets.
const Mask = "***"

// String is a secret text that prints and encodes as Mask. Reveal returns the text. Do not use a String in an unexported field or
// as a map key: fmt does not call the methods of unexported fields, and encoding/json does not call the methods of string map
// keys, so both would reveal the text.
type String string

// String returns Mask.
func (String) String() string { return Mask }

// GoString returns Mask, for %#v.
func (String) GoString() string { return Mask }

// Format writes Mask for every verb. Without Format, fmt would print the text for verbs that do not apply to strings, such as %d.
func (String) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, Mask) }

// MarshalText returns Mask, for JSON, YAML and log formatters. A String therefore loses its text when it is stored as JSON. To
// store the text, seal it with a Keyring or use Stored.
func (String) MarshalText() ([]byte, error) { return []byte(Mask), nil }

// Reveal returns the text.
func (s String) Reveal() string { return string(s) }

// Stored is a secret inside a JSON document that is sealed as a whole. It prints as Mask, but its JSON form contains the text. A
// Stored must therefore never be part of a response.
type Stored string

// String returns Mask.
func (Stored) String() string { return Mask }

// GoString returns Mask, for %#v.
func (Stored) GoString() string { return Mask }

// Format writes Mask for every verb.
func (Stored) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, Mask) }

// Reveal returns the text.
func (s Stored) Reveal() String { return String(s) }
