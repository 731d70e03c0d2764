package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/test/harness"
)

// processesPage is the path of the generated page about the processes.
const processesPage = "../../docs/operator/processes.md"

// TestProcessesAreThoseOfThePage compares the processes that ebctl shows for a running broker with those on the page.
func TestProcessesAreThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile(processesPage)
	if err != nil {
		t.Fatal(err)
	}

	documented := processesOf(string(page))
	e := start(t, harness.SQLite, 0)

	var list operatorapi.ProcessList

	e.decode(e.ebctl("process", "list", "-o", "json"), &list)

	if len(list.Data) != len(documented) {
		t.Errorf("the broker has %d processes, the page %d", len(list.Data), len(documented))
	}

	for _, listed := range list.Data {
		var shown operatorapi.Process

		e.decode(e.ebctl("process", "show", listed.Kind, "-o", "json"), &shown)

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
				step.Stage, step.Step, step.System, step.Condition, step.Retry, limit, skip, step.Creates,
			}, " | ")+" |")
		}

		if diff := cmp.Diff(documented[shown.Kind], rows); diff != "" {
			t.Errorf("%s: -page +broker\n%s", shown.Kind, diff)
		}

		// The table that ebctl prints has the same columns as the page, but wider gaps.
		table := e.ebctl("process", "show", listed.Kind)
		for _, step := range shown.Steps {
			for _, cell := range []string{step.Stage, step.Step, step.System, step.Condition, step.Retry, step.Limit, step.Creates} {
				if !strings.Contains(table, cell) {
					t.Errorf("the table of %s does not show %q of %s", listed.Kind, cell, step.Step)
				}
			}
		}
	}
}

// processesOf returns the limit and the steps of each process on the page, one line each.
func processesOf(page string) map[string][]string {
	found, kind := map[string][]string{}, ""

	for line := range strings.Lines(page) {
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
