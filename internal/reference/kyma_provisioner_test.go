package main

import (
	"slices"
	"testing"
)

// TestKymaVariables checks that every variable of the Kyma Provisioner is kept with its default, or has a reason for the difference.
func TestKymaVariables(t *testing.T) {
	present := presentVariables()

	var seen []string

	for _, variable := range kymaVariables() {
		ours, isKept := present[variable.name]

		switch {
		case slices.Contains(seen, variable.name):
			t.Errorf("%s is listed twice", variable.name)
		case !isKept && variable.dropped == "":
			t.Errorf("%s is gone without a reason", variable.name)
		case isKept && variable.dropped != "":
			t.Errorf("%s exists, but is listed as gone: %s", variable.name, variable.dropped)
		case isKept && !same(variable.value, ours.Default) && variable.changed == "":
			t.Errorf("the default of %s differs without a reason: %q there, %q here", variable.name, ours.Default, variable.value)
		}

		seen = append(seen, variable.name)
	}
}
