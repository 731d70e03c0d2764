package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	systemdFolder = resourcesFolder + "/systemd"
	unitFile      = "environment-broker@.service"
)

// setting is a line of a unit or of an environment file.
type setting struct{ name, value string }

// settings returns the settings of a file. It leaves out comments and the names of sections.
func settings(t *testing.T, name string) []setting {
	t.Helper()

	content, err := os.ReadFile(filepath.Join(systemdFolder, name))
	if err != nil {
		t.Fatal(err)
	}

	var found []setting

	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if key, value, is := strings.Cut(line, "="); is && !strings.HasPrefix(line, "#") {
			found = append(found, setting{key, value})
		}
	}

	return found
}

// unitSetting returns the value of a setting that occurs once in the unit.
func unitSetting(t *testing.T, name string) string {
	t.Helper()

	for _, each := range settings(t, unitFile) {
		if each.name == name {
			return each.value
		}
	}

	t.Fatalf("%s has no %s", unitFile, name)

	return ""
}

// TestUnits checks the units with systemd, where it is installed, for each service.
func TestUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not installed: the other tests parse the units")

		return
	}

	for _, service := range servicePrefixes() {
		folder := t.TempDir()
		if err := os.CopyFS(folder, os.DirFS(systemdFolder)); err != nil {
			t.Fatal(err)
		}

		template, err := os.ReadFile(filepath.Join(folder, unitFile))
		if err != nil {
			t.Fatal(err)
		}

		// systemd checks that the program exists.
		unit := filepath.Join(folder, "environment-broker@"+service+".service")
		if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(template), "/usr/local/bin/%i", "/bin/sh")), 0o600); err != nil {
			t.Fatal(err)
		}

		for _, arguments := range [][]string{{"verify", "--man=no", unit}, {"security", "--offline=true", "--threshold=20", "--no-pager", unit}} {
			if output, err := exec.CommandContext(t.Context(), analyze, arguments...).CombinedOutput(); err != nil || arguments[0] == "verify" && len(output) > 0 {
				t.Errorf("%s: systemd-analyze %s: %v\n%s", service, arguments[0], err, output)
			}
		}
	}
}

// TestEnvironmentFiles checks that the files name variables of their services, and no secrets.
func TestEnvironmentFiles(t *testing.T) {
	variables := configurations()

	for _, service := range servicePrefixes() {
		environment := []string{}

		for _, each := range settings(t, service+".env") {
			environment = append(environment, each.name+"="+each.value)

			known := slices.IndexFunc(variables[service], func(variable program.Variable) bool { return variable.Name == each.name })
			if known < 0 {
				t.Errorf("%s.env: the %s has no variable %s", service, service, each.name)

				continue
			}

			if variables[service][known].Secret && each.value != "" && !strings.Contains(each.value, "CHANGE-ME") {
				t.Errorf("%s.env: %s has the value %s, which somebody could use", service, each.name, each.value)
			}
		}

		if len(environment) < 4 {
			t.Errorf("%s.env has %d variables", service, len(environment))
		}
	}

	// Each drop-in sets a variable of its service to a credential that it loads.
	for service, folder := range map[string]string{"provisioner": "gardener", "bundler": "cluster"} {
		loaded := ""

		for _, each := range settings(t, fmt.Sprintf("environment-broker@%s.service.d/%s.conf", service, folder)) {
			switch each.name {
			case "LoadCredential":
				loaded, _, _ = strings.Cut(each.value, ":")
			case "Environment":
				name, path, _ := strings.Cut(each.value, "=")
				if path != "%d/"+loaded || !slices.ContainsFunc(variables[service], func(variable program.Variable) bool { return variable.Name == name }) {
					t.Errorf("%s: %s is %s, but the credential is %s", service, name, path, loaded)
				}
			}
		}
	}
}

// TestUnitRuns starts the broker as the unit does: with its command, in its state folder, and with the variables of its
// environment file, except that it uses SQLite and other addresses. Then it stops the broker as systemd does.
func TestUnitRuns(t *testing.T) {
	command := strings.ReplaceAll(unitSetting(t, "ExecStart"), "%i", "broker")
	if command != "/usr/local/bin/broker" {
		t.Fatalf("the unit runs %s", command)
	}

	limit, err := time.ParseDuration(unitSetting(t, "TimeoutStopSec") + "s")
	if err != nil {
		t.Fatal(err)
	}

	delay, err := time.ParseDuration(defaultOf(t, "broker", "APP_SHUTDOWN_DELAY"))
	if err != nil || limit < delay+stopLimit {
		t.Errorf("systemd kills a service after %s, but it needs %s and %s to stop: %v", limit, delay, stopLimit, err)
	}

	status := harness.FreeAddress(t)
	environment := []string{}

	for _, each := range settings(t, "broker.env") {
		environment = append(environment, each.name+"="+each.value)
	}

	environment = append(environment, "APP_ADDRESS=127.0.0.1:0", "APP_STATUS_ADDRESS="+status, "APP_DATABASE_DRIVER=sqlite",
		"APP_DATABASE_PATH="+filepath.Join(t.TempDir(), "broker.db"), "APP_DATABASE_SECRET_KEYS=k1:"+strings.Repeat("A", 43)+"=")
	broker := harness.Launch(t, environment, harness.Build(t, "broker"))

	harness.Until(t, "the broker is ready", func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+status+"/readyz", nil)
		if err != nil {
			return false
		}

		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}

		return response.Body.Close() == nil && response.StatusCode == http.StatusOK
	})

	if code := broker.Terminate(); code != 0 {
		t.Errorf("the broker ends with %d", code)
	}
}

// defaultOf returns the default value of a variable.
func defaultOf(t *testing.T, service, name string) string {
	t.Helper()

	for _, each := range configurations()[service] {
		if each.Name == name {
			return each.Default
		}
	}

	t.Fatalf("%s has no variable %s", service, name)

	return ""
}
