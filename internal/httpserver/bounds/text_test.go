package bounds_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
)

func TestVisible(t *testing.T) {
	t.Parallel()

	for text, reason := range map[string]string{
		"0f5b2c7e-1111": "a GUID", "a b/c;d'": "any visible character", "übergröße": "letters of any language", "жук": "letters of any language", "🙂": "symbols",
	} {
		if !bounds.Visible(text) {
			t.Errorf("%q must be allowed: %s", text, reason)
		}
	}

	for text, reason := range map[string]string{
		"a\u0000b": "a control character", "a\nb": "a line break", "a\u200bb": "a zero-width space", "a\u202eb": "reverses the text",
		"\ufeffa": "a byte order mark", "a\u00adb": "a soft hyphen", "a\u2060b": "a word joiner", "a\u00a0b": "looks like a space",
		"a\u3164b": "a filler", "a\u115fb": "a filler", "a\u2800b": "a blank symbol", "a\ufe0fb": "a variation selector", "a\u034fb": "a joiner",
		"\xff": "not UTF-8", "a\ufffdb": "a replaced character", "a\U000e0041b": "a tag character", "a\ue000b": "of private use",
	} {
		if bounds.Visible(text) {
			t.Errorf("%q must be refused: %s", text, reason)
		}
	}
}
