package secret

import (
	"fmt"
	"io"
)

// Mask is what a secret prints as, in logs, errors and JSON alike.
const Mask = "***"

// String is a text that never shows itself: every way of printing or encoding it gives Mask. Reveal returns the text.
// Keep it in exported fields, and not as key of a map: fmt prints unexported fields, and json writes keys, without asking them.
type String string

// String returns Mask.
func (String) String() string { return Mask }

// GoString returns Mask, for %#v.
func (String) GoString() string { return Mask }

// Format writes Mask, whatever the verb: one that does not fit a text would have the package fmt show the value.
func (String) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, Mask) }

// MarshalText returns Mask, so JSON, YAML and log formatters write nothing else. To store a secret, seal it.
func (String) MarshalText() ([]byte, error) { return []byte(Mask), nil }

// Reveal returns the text.
func (s String) Reveal() string { return string(s) }
