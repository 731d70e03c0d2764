package labels_test

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/labels"
)

func TestMatches(t *testing.T) {
	for name, c := range map[string]struct {
		reason, selector string
		want             bool
	}{
		"nothing":      {"no conditions", "", true},
		"value":        {"the value is the same", "ring=canary", true},
		"other value":  {"the value differs", "ring=late", false},
		"any value":    {"the label exists", "ring,team", true},
		"empty value":  {"the value is empty", "team=", true},
		"not empty":    {"the value is not empty", "ring=", false},
		"missing":      {"the label does not exist", "ring,zone", false},
		"with a group": {"names can have prefixes", "example.com/a=b", true},
	} {
		t.Run(name, func(t *testing.T) {
			conditions, err := labels.Parse(c.selector)
			if err != nil {
				t.Fatal(err)
			}

			got := true
			for _, condition := range conditions {
				got = got && condition.Matches(map[string]string{"ring": "canary", "team": "", "example.com/a": "b"})
			}

			if got != c.want {
				t.Errorf("%s: got %t", c.reason, got)
			}
		})
	}
}

func TestInvalid(t *testing.T) {
	for _, selector := range []string{",", "a,", "=b", "a=b=c", "a b", strings.Repeat("a", 64), "a=" + strings.Repeat("b", 64), strings.Repeat("a,", labels.Max) + "a"} {
		if _, err := labels.Parse(selector); err == nil {
			t.Errorf("%q is accepted", selector)
		}
	}
}
