package tutorials

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/sandbox"
	"github.com/environment-broker/environment-broker/test/harness"
	"github.com/environment-broker/environment-broker/test/sources"
)

// kinds returns the kinds of the operations that run the tutorials' steps, by the paths of the pages in docs/tutorials.
func kinds() map[string]string {
	return map[string]string{
		"custom-step.md": "provision", "steps/deprovisioning.md": "deprovision", "steps/update.md": "update",
		"steps/upgrade-kyma.md": "upgradeKyma", "steps/upgrade-cluster.md": "upgradeCluster",
	}
}

// read reads the tutorials. It fails the test unless every process of an instance has one.
func read(t *testing.T) []tutorial {
	t.Helper()

	folder := filepath.Join("docs", "tutorials")

	pages, err := filepath.Glob(filepath.Join(harness.Root, folder, "steps", "*.md"))
	if err != nil || len(pages) != len(kinds())-1 {
		t.Fatalf("found %d tutorials in steps, want %d: %v", len(pages), len(kinds())-1, err)
	}

	tutorials := make([]tutorial, 0, len(kinds()))

	for _, page := range slices.Sorted(maps.Keys(kinds())) {
		one := tutorial{kind: kinds()[page], page: filepath.Join(folder, page)}

		text, err := os.ReadFile(filepath.Join(harness.Root, one.page))
		if err != nil {
			t.Fatal(err)
		}

		if one.listings, err = listings(string(text)); err != nil {
			t.Fatalf("%s: %v", one.page, err)
		}

		if one.kind == "" || len(one.tests()) == 0 || len(one.rows()) == 0 {
			t.Fatalf("%s is for the kind %q and has the tests %v and the rows %v: want all of them", one.page, one.kind, one.tests(), one.rows())
		}

		tutorials = append(tutorials, one)
	}

	return tutorials
}

// TestTutorials applies each tutorial on its own, but builds and runs all of them together, which takes a fifth of the time.
func TestTutorials(t *testing.T) {
	tutorials, changed := read(t), files{}

	for _, one := range tutorials {
		files{}.apply(t, one)
		changed.apply(t, one)
	}

	overlay := changed.overlay(t)

	t.Run("tests", func(t *testing.T) {
		t.Parallel()
		runTests(t, overlay, changed, tutorials)
	})
	t.Run("steps", func(t *testing.T) {
		t.Parallel()
		runSteps(t, overlay, tutorials)
	})
}

// overlay writes the files to a temporary folder, and returns the path of a JSON file for `go build -overlay` with which they
// replace files in the source tree.
func (f files) overlay(t *testing.T) string {
	t.Helper()

	root, err := filepath.Abs(harness.Root)
	if err != nil {
		t.Fatal(err)
	}

	folder, replaced := t.TempDir(), map[string]string{}

	for file, content := range f {
		copied := filepath.Join(folder, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(copied, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}

		replaced[filepath.Join(root, file)] = copied
	}

	encoded, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}

	overlay := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(overlay, encoded, 0o600); err != nil {
		t.Fatal(err)
	}

	return overlay
}

// goTool runs the go command in the root of the repository and returns its output.
func goTool(t *testing.T, arguments ...string) string {
	t.Helper()

	command := exec.CommandContext(t.Context(), "go", arguments...)
	command.Dir = harness.Root

	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}

	return string(output)
}

// runTests runs the tests of the processes, which include the tests in the listings, and compiles the other tests that the
// listings change.
func runTests(t *testing.T, overlay string, changed files, tutorials []tutorial) {
	t.Helper()

	var processes, others []string

	for _, file := range slices.Sorted(maps.Keys(changed)) {
		folder := "./" + filepath.Dir(file)
		if strings.HasPrefix(folder, "./process/") {
			processes = append(processes, folder)
		} else if strings.HasSuffix(file, "_test.go") {
			others = append(others, folder)
		}
	}

	if err := sources.Open(harness.Root, slices.Concat([]string{"./cmd/sandbox"}, processes, others)...); err != nil {
		t.Fatal(err)
	}

	output := goTool(t, append([]string{"test", "-v", "-overlay", overlay}, slices.Compact(processes)...)...)

	for _, one := range tutorials {
		for _, name := range one.tests() {
			if !strings.Contains(output, "--- PASS: "+name+" ") {
				t.Errorf("%s: its test %s has not run", one.page, name)
			}
		}
	}

	goTool(t, append([]string{"vet", "-overlay", overlay}, slices.Compact(others)...)...)
}

// runSteps runs an instance's operations on a sandbox with the new steps.
func runSteps(t *testing.T, overlay string, tutorials []tutorial) {
	t.Helper()

	program := filepath.Join(t.TempDir(), "sandbox")
	goTool(t, "build", "-buildvcs=false", "-overlay", overlay, "-o", program, "./cmd/sandbox")

	client := startSandbox(t, program)
	operations := runOperations(client)
	processes := decoded[operatorapi.ProcessList](client, "/processes")

	for _, one := range tutorials {
		index := slices.IndexFunc(processes.Data, func(process operatorapi.Process) bool { return process.Kind == one.kind })
		operation := decoded[operatorapi.Operation](client, "/operations/"+operations[one.kind])

		for _, row := range one.rows() {
			if !slices.ContainsFunc(processes.Data[index].Steps, func(step operatorapi.ProcessStep) bool { return cmp.Equal(row, cells(step)) }) {
				t.Errorf("%s: the process has no step as in the row %q", one.page, row)
			}

			if !slices.ContainsFunc(operation.Timeline, func(entry operatorapi.TimelineEntry) bool {
				return entry.Stage == row[0] && entry.Step == row[1] && entry.Outcome == "done"
			}) {
				t.Errorf("%s: the step %s is not in the timeline: %+v", one.page, row[1], operation.Timeline)
			}
		}
	}
}

// cells returns the cells of a step's row in processesPage.
func cells(step operatorapi.ProcessStep) []string {
	limit, skip := step.Limit, ""
	if step.Optional {
		limit += ", continues"
	}

	if step.Skippable {
		skip = "yes"
	}

	return []string{step.Stage, step.Step, step.System, step.Condition, step.Retry, limit, skip, step.Creates}
}

// startSandbox runs the sandbox at the path in program until the test ends. Its clusters are ready after a tenth of a second.
func startSandbox(t *testing.T, program string) harness.Client {
	t.Helper()

	announcement := harness.Launch(t, []string{
		"SANDBOX_DIR=" + t.TempDir(), "SANDBOX_CLUSTER_CREATION=100ms", "SANDBOX_BROKER_ADDRESS=127.0.0.1:0", "SANDBOX_PROVISIONER_ADDRESS=127.0.0.1:0",
		"SANDBOX_STATUS_ADDRESS=127.0.0.1:0", "SANDBOX_PROVISIONER_STATUS_ADDRESS=127.0.0.1:0",
		"SANDBOX_BUNDLES_ADDRESS=127.0.0.1:0", "SANDBOX_BUNDLES_STATUS_ADDRESS=127.0.0.1:0",
	}, program).Line()

	match := regexp.MustCompile(`broker (http://\S+) `).FindStringSubmatch(announcement)
	if match == nil {
		t.Fatalf("the sandbox announced no address: %s", announcement)
	}

	return harness.Client{TB: t, Endpoint: harness.Endpoint{URL: match[1], User: sandbox.User, Password: sandbox.Password}}
}

// runOperations creates, changes, upgrades and deletes an instance with Kyma. It returns the IDs of the operations by their kinds.
func runOperations(client harness.Client) map[string]string {
	const instance = "instance-1"

	operations := map[string]string{}
	path := harness.InstancePath(instance) + harness.Incomplete
	run := func(kind, method, path string, body any) {
		operations[kind] = client.Send(method, path, body, http.StatusAccepted).Text("operation")
		client.Until("the end of "+kind, func() bool {
			operation := decoded[operatorapi.Operation](client, "/operations/"+operations[kind])
			if operation.State == "failed" {
				client.Fatalf("%s failed: %+v", kind, operation)
			}

			return operation.State == "succeeded"
		})
	}

	run("provision", http.MethodPut, path, harness.Order(harness.PlanPreview))
	run("update", http.MethodPatch, path, map[string]any{
		"service_id": harness.ServiceID, "parameters": map[string]any{"machineType": "m6i.4xlarge"},
	})
	run("upgradeCluster", http.MethodPost, "/runtimes/"+instance+"/upgradeCluster", map[string]any{})
	run("upgradeKyma", http.MethodPost, "/runtimes/"+instance+"/upgradeKyma", map[string]any{})
	run("deprovision", http.MethodDelete, harness.DeletionPath(instance, harness.PlanPreview), nil)

	return operations
}

// decoded sends a GET request to the operator API and returns the decoded response.
func decoded[T any](client harness.Client, path string) (value T) {
	client.Helper()

	reply := client.Send(http.MethodGet, path, nil, http.StatusOK)
	if err := json.Unmarshal([]byte(reply.Raw), &value); err != nil {
		client.Fatal(err)
	}

	return value
}
