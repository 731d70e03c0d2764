package main

import (
	"slices"
	"testing"
)

// TestFormerVariables has every variable of the former Provisioner be there with its default, or be gone for a reason.
func TestFormerVariables(t *testing.T) {
	present := presentVariables()

	var seen []string

	for _, former := range formers() {
		ours, isKept := present[former.name]

		switch {
		case slices.Contains(seen, former.name):
			t.Errorf("%s is told twice", former.name)
		case !isKept && former.dropped == "":
			t.Errorf("%s is gone, and nothing says why", former.name)
		case isKept && former.dropped != "":
			t.Errorf("%s is said to be gone, because %s, and is there", former.name, former.dropped)
		case isKept && !same(former.value, ours.Default) && former.changed == "":
			t.Errorf("%s has another default than it had: %q, not %q", former.name, ours.Default, former.value)
		}

		seen = append(seen, former.name)
	}
}
