package failure_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/failure"
)

func TestShorten(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		reason, text string
		limit        int
		want         string
	}{
		"Fits":  {"a text of the maximum length is complete", "äöüß", 4, "äöüß"},
		"Even":  {"action and cause remain", "updating the Shoot: oidcConfig is unknown", 20, "updating t…s unknown"},
		"Odd":   {"the ellipsis counts as a character", "äöüßabc", 5, "äö…bc"},
		"Short": {"a limit of one character leaves the ellipsis", "abc", 1, "…"},
	} {
		if got := failure.Shorten(test.text, test.limit); got != test.want {
			t.Errorf("%s: %s: got %q, want %q", name, test.reason, got, test.want)
		}
	}
}
