package secret

import (
	"fmt"
	"io"
)

// Stored is a secret within something that is sealed as a whole before it is stored: printing gives Mask, JSON the text. What
// holds one is never part of an answer.
type Stored string

// String returns Mask.
func (Stored) String() string { return Mask }

// GoString returns Mask, for %#v.
func (Stored) GoString() string { return Mask }

// Format writes Mask, whatever the verb.
func (Stored) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, Mask) }

// Reveal returns the text.
func (s Stored) Reveal() String { return String(s) }
