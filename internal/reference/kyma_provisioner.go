package main

import (
	_ "embed" // kyma_provisioner.yaml
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/program"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
)

// kymaVariable is a variable of the Kyma Provisioner.
type kymaVariable struct {
	Name string `json:"name"`
	// Value is the default in the Kyma Provisioner.
	Value string `json:"value"`
	// Dropped is the reason why our Provisioner does not have the variable. It is empty if our Provisioner has the variable.
	Dropped string `json:"dropped"`
	// Changed is the reason why our default differs. If it is empty, the page shows only our default.
	Changed string `json:"changed"`
}

//go:embed kyma_provisioner.yaml
var kymaVariablesFile []byte

// kymaVariables returns the variables of all versions of the Kyma Provisioner, in the order of the documentation page.
func kymaVariables() ([]kymaVariable, error) {
	var variables []kymaVariable
	if err := yaml.UnmarshalStrict(kymaVariablesFile, &variables); err != nil {
		return nil, fmt.Errorf("reading kyma_provisioner.yaml: %w", err)
	}

	return variables, nil
}

// kymaProvisionerPage returns the variables of the Kyma Provisioner in two lists: those that our Provisioner has too, with a
// remark if the default differs, and those that it does not have, with the reasons. Our variables and defaults come from the
// code, so only the data of the Kyma Provisioner is maintained by hand.
func kymaProvisionerPage() (any, error) {
	variables, err := kymaVariables()
	present := presentVariables()

	var page struct{ Kept, Dropped []kymaVariable }

	for _, variable := range variables {
		ours, isKept := present[variable.Name]

		switch {
		case !isKept:
			page.Dropped = append(page.Dropped, variable)

			continue
		case equalDefaults(variable.Value, ours.Default):
			variable.Changed = ""
		case variable.Changed == "":
			variable.Changed = "here " + code(ours.Default)
		}

		page.Kept = append(page.Kept, variable)
	}

	return page, err
}

// presentVariables returns the variables of our Provisioner, keyed by name.
func presentVariables() map[string]program.Variable {
	present := map[string]program.Variable{}
	for _, variable := range program.Variables(program.Prefix, provisioner.DefaultConfig()) {
		present[variable.Name] = variable
	}

	return present
}

// equalDefaults reports whether two defaults are equal. Durations are compared by value: 60m equals 1h0m0s.
func equalDefaults(one, other string) bool {
	first, err := time.ParseDuration(one)
	if err != nil {
		return one == other
	}

	second, err := time.ParseDuration(other)

	return err == nil && first == second
}
