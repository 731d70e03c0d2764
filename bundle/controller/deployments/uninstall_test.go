package deployments

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestNotes checks that notes of events have a length that the API server accepts, and keep as much of the text as possible.
func TestNotes(t *testing.T) {
	for name, text := range map[string]string{
		"short":    "x",
		"limit":    strings.Repeat("x", maxEvent),
		"long":     strings.Repeat("x", maxEvent+1),
		"not text": strings.Repeat("\xff", 3000),
		"umlauts":  strings.Repeat("ü", maxEvent),
		"emojis":   strings.Repeat("🙂", 3000),
	} {
		got := note(text)
		if len(got) > maxEvent || len(got) < min(len(text), maxEvent/2) || utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("%s: the note has %d bytes", name, len(got))
		}

		if len(text) <= maxEvent && got != text {
			t.Errorf("%s: the text was shortened", name)
		}
	}
}
