package main

import (
	"slices"
	"testing"
)

// TestKymaVariables checks that our Provisioner has every variable of the Kyma Provisioner with the same default, or that the
// list states a reason for the difference.
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
			t.Errorf("our Provisioner does not have %s, and the list states no reason", variable.Name)
		case isKept && variable.Dropped != "":
			t.Errorf("our Provisioner has %s, but the list states that it was dropped: %s", variable.Name, variable.Dropped)
		case isKept && !equalDefaults(variable.Value, ours.Default) && variable.Changed == "":
			t.Errorf("the default of %s differs without a reason: %q in the Kyma Provisioner, %q in ours", variable.Name, variable.Value, ours.Default)
		}

		seen = append(seen, variable.Name)
	}
}
