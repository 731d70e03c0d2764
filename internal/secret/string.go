package secret

// Mask is what a secret prints as, in logs, errors and JSON alike.
const Mask = "***"

// String is a text that never shows itself: every way of printing or encoding it gives Mask. Reveal returns the text.
type String string

// String returns Mask.
func (String) String() string { return Mask }

// GoString returns Mask, for %#v.
func (String) GoString() string { return Mask }

// MarshalText returns Mask, so JSON, YAML and log formatters write nothing else. To store a secret, seal it.
func (String) MarshalText() ([]byte, error) { return []byte(Mask), nil }

// Reveal returns the text.
func (s String) Reveal() string { return string(s) }
