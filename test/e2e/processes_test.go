package e2e

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/test/harness"
)

// processesPage is the path of the generated page about the broker's processes.
const processesPage = "../../docs/operator/processes.md"

// provisionerPage is the path of the generated page about the Provisioner's processes.
const provisionerPage = "../../docs/operator/provisioner-processes.md"

// TestProcessesAreThoseOfThePage compares the processes that ebctl shows for a running broker with those on the page.
func TestProcessesAreThoseOfThePage(t *testing.T) {
	documented := processesOf(t, processesPage)
	e := start(t, harness.SQLite, 0)

	var list operatorapi.ProcessList

	e.decode(e.ebctl("process", "list", "-o", "json"), &list)

	if len(list.Data) != len(documented) {
		t.Errorf("the broker has %d processes, the page %d", len(list.Data), len(documented))
	}

	for _, listed := range list.Data {
		var shown operatorapi.Process

		e.decode(e.ebctl("process", "show", listed.Kind, "-o", "json"), &shown)

		if diff := cmp.Diff(documented[shown.Kind], rowsOf(shown)); diff != "" {
			t.Errorf("%s: -page +broker\n%s", shown.Kind, diff)
		}

		// The table that ebctl prints has the same columns as the page, but wider gaps.
		table := e.ebctl("process", "show", listed.Kind)
		for _, step := range shown.Steps {
			for _, cell := range []string{step.Stage, step.Step, step.Does, step.System, step.Condition, step.Retry, step.Limit, step.Creates} {
				if !strings.Contains(table, cell) {
					t.Errorf("the table of %s does not show %q of %s", listed.Kind, cell, step.Step)
				}
			}
		}
	}
}

// TestProcessesOfTheProvisionerAreThoseOfThePage compares the processes of a running Provisioner that uses Director, but no bundle
// provisioner, with those on the page.
func TestProcessesOfTheProvisionerAreThoseOfThePage(t *testing.T) {
	t.Parallel()

	documented := processesOf(t, provisionerPage)
	c := newAgentEnv(t, projectOf(harness.StartGarden(t, 200*time.Millisecond)))

	var list operatorapi.ProcessList
	if err := json.Unmarshal([]byte(c.operate(harness.Call{Path: "/processes"}).Raw), &list); err != nil {
		t.Fatal(err)
	}

	if len(list.Data) != len(documented) {
		t.Errorf("the Provisioner has %d processes, the page %d", len(list.Data), len(documented))
	}

	for _, shown := range list.Data {
		want := slices.DeleteFunc(documented[shown.Kind], func(row string) bool { return strings.Contains(row, "| Forget_Bundles |") })
		if diff := cmp.Diff(want, rowsOf(shown)); diff != "" {
			t.Errorf("%s: -page +Provisioner\n%s", shown.Kind, diff)
		}
	}
}

// rowsOf returns the limit and the steps of the process, one line each, as on the page.
func rowsOf(shown operatorapi.Process) []string {
	rows := []string{"The limit of the whole operation is " + shown.Limit + "."}

	for _, step := range shown.Steps {
		limit, skip := step.Limit, ""
		if step.Optional {
			limit += ", continues"
		}

		if step.Skippable {
			skip = "yes"
		}

		rows = append(rows, "| "+strings.Join([]string{
			step.Stage, step.Step, step.Does, step.System, step.Condition, step.Retry, limit, skip, step.Creates,
		}, " | ")+" |")
	}

	return rows
}

// processesOf returns the limit and the steps of each process on the page, one line each.
func processesOf(t *testing.T, path string) map[string][]string {
	t.Helper()

	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	found, kind := map[string][]string{}, ""

	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)

		switch {
		case strings.HasPrefix(line, "## "):
			kind = strings.TrimPrefix(line, "## ")
		case strings.HasPrefix(line, "| stage "), strings.HasPrefix(line, "| ---"), kind == "", line == "":
		default:
			found[kind] = append(found[kind], line)
		}
	}

	return found
}
