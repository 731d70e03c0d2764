package main

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/process"
)

// TestStepsAreDescribed checks that each step says what it does and, unless it uses only the database, which system it calls.
// Operators read this on processes.md and provisioner-processes.md, and when an operation is stuck at the step.
func TestStepsAreDescribed(t *testing.T) {
	t.Parallel()

	database := map[string]bool{
		"Record_Configuration": true, "Mark_Deleted": true,
		"Starting": true, "Init_Step": true, "Update_Kyma_Initialization": true, "Upgrade_Cluster_Initialization": true, "Resolve_Target_Secret": true,
		"BTPOperatorOverrides": true, "BusolaMigratorOverrides": true,
		"Record_Update": true, "Record_Upgrade": true, "Resume_Instance": true, "Suspend_Instance": true, "Remove_Instance": true,
		"Remove_Binding": true, "Plan_Targets": true, "Run_Targets": true,
	}
	steps := map[string]bool{}

	all := append(process.Describe(provisionerProcesses()), process.Describe(service.Processes(service.DefaultConfig(), service.Parts{}))...)
	for _, described := range all {
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
