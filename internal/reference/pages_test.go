package main

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/process"
)

// TestStepsOfTheProvisionerAreDescribed checks that each step says what it does and which system it calls. Operators read this on
// provisioner-processes.md.
func TestStepsOfTheProvisionerAreDescribed(t *testing.T) {
	t.Parallel()

	database := map[string]bool{"Record_Configuration": true, "Mark_Deleted": true}
	steps := map[string]bool{}

	for _, described := range process.Describe(provisionerProcesses()) {
		for _, step := range described.Steps {
			name := described.Kind + "/" + step.Step
			steps[step.Step] = true

			if !strings.HasSuffix(step.Does, ".") {
				t.Errorf("%s: Does is %q, want a sentence: add it to the notes of the step", name, step.Does)
			}

			if (step.System == "") != database[step.Step] {
				t.Errorf("%s: System is %q: name the system, or list the step in this test if it uses only the database", name, step.System)
			}
		}
	}

	for _, optional := range []string{"Describe_Runtime", "Connect_Runtime_Agent", "Tell_Connection", "Unregister_Runtime", "Forget_Bundles"} {
		if !steps[optional] {
			t.Errorf("the page lacks the step %s, which only some configurations have", optional)
		}
	}
}
