package main

import (
	"slices"
	"testing"
)

// TestKymaVariables checks that every variable of the Kyma Provisioner is kept with its default, or has a reason for the difference.
func TestKymaVariables(t *testing.T) {
	present := presentVariables()

	variables, err := kymaVariables()
	if err != nil {
		t.Fatal(err)
	}

	var seen []string

	for _, variable := range variables {
		ours, isKept := present[variable.Name]

		switch {
		case slices.Contains(seen, variable.Name):
			t.Errorf("%s is listed twice", variable.Name)
		case !isKept && variable.Dropped == "":
			t.Errorf("%s is gone without a reason", variable.Name)
		case isKept && variable.Dropped != "":
			t.Errorf("%s exists, but is listed as gone: %s", variable.Name, variable.Dropped)
		case isKept && !same(variable.Value, ours.Default) && variable.Changed == "":
			t.Errorf("the default of %s differs without a reason: %q in the Kyma Provisioner, %q in ours", variable.Name, variable.Value, ours.Default)
		}

		seen = append(seen, variable.Name)
	}
}
