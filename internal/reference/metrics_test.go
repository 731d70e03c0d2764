package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/secret"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/storage"
)

const metricsPage = "../../docs/operator/metrics.md"

// TestMetricsAreDocumented checks that the metrics page lists the metrics that the two services register, with their
// labels and help texts.
func TestMetricsAreDocumented(t *testing.T) {
	for service, registry := range map[string]*prometheus.Registry{"broker": brokerMetrics(t), "provisioner": provisionerMetrics(t)} {
		want := documented(t)
		if service == "provisioner" {
			maps.DeleteFunc(want, func(name string, _ []string) bool {
				return !slices.ContainsFunc(sharedGroups(), func(group metricGroup) bool { return group.has(name) })
			})
		}

		if diff := cmp.Diff(want, registered(t, registry)); diff != "" {
			t.Errorf("the metrics of the %s differ from the rows of %s: -documented +registered\n%s", service, metricsPage, diff)
		}
	}
}

func database(t *testing.T) replica.Database {
	t.Helper()

	settings := replica.DefaultConfig("service", storage.DriverSQLite).Database
	settings.Path = filepath.Join(t.TempDir(), "service.db")
	settings.SecretKeys = secret.NewKey("test")

	return settings
}

func brokerMetrics(t *testing.T) *prometheus.Registry {
	t.Helper()

	settings := broker.DefaultConfig()
	settings.Address, settings.StatusAddress, settings.Database = "127.0.0.1:0", "127.0.0.1:0", database(t)

	service, err := broker.New(t.Context(), settings, logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = service.Close() })

	return service.Metrics()
}

func provisionerMetrics(t *testing.T) *prometheus.Registry {
	t.Helper()

	memory, err := fakegarden.Open(t.Context(), fakegarden.Options{Dir: t.TempDir(), Log: logging.Discard()})
	if err != nil {
		t.Fatal(err)
	}

	settings := provisioner.DefaultConfig()
	settings.Address, settings.StatusAddress, settings.Database = "127.0.0.1:0", "127.0.0.1:0", database(t)

	service, err := provisioner.New(t.Context(), settings, memory.Client(), logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = service.Close() })

	return service.Metrics()
}

// documented maps the names of the metrics in the table of the metrics page to their labels and help texts.
func documented(t *testing.T) map[string][]string {
	t.Helper()

	page, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}

	rows := map[string][]string{}

	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if name := strings.TrimSpace(cells[0]); len(cells) == 3 && strings.HasPrefix(name, "environment_broker_") {
			labels := strings.FieldsFunc(cells[1], func(r rune) bool { return r == ',' || r == ' ' })
			slices.Sort(labels)

			rows[name] = []string{strings.Join(labels, " "), strings.TrimSpace(cells[2])}
		}
	}

	return rows
}

// TestHelpsNameTheKind checks that the help of each metric with a kind label says that there is a value for each kind.
func TestHelpsNameTheKind(t *testing.T) {
	for name, row := range documented(t) {
		if labels, help := row[0], row[1]; slices.Contains(strings.Fields(labels), "kind") && !strings.Contains(help, "by kind") {
			t.Errorf("the help of %s does not name the label kind: %s", name, help)
		}
	}
}

// description parses the text of a prometheus.Desc, because the type has no accessors for its fields.
var (
	description = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "([^"]*)", unit: "[^"]*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)
	constant    = regexp.MustCompile(`(\w+)="[^"]*"`)
)

// registered maps the names of a service's metrics to their labels and help texts. It omits the metrics of the Go runtime.
func registered(t *testing.T, registry *prometheus.Registry) map[string][]string {
	t.Helper()

	descriptions := make(chan *prometheus.Desc)

	go func() {
		defer close(descriptions)
		registry.Describe(descriptions)
	}()

	found := map[string][]string{}

	for each := range descriptions {
		parts := description.FindStringSubmatch(each.String())
		if parts == nil {
			t.Fatalf("the test cannot read the description %s", each)
		}

		name := parts[1]
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}

		labels := strings.FieldsFunc(parts[4], func(r rune) bool { return r == ',' || r == ' ' })
		for _, label := range constant.FindAllStringSubmatch(parts[3], -1) {
			labels = append(labels, label[1])
		}

		slices.Sort(labels)

		found[name] = []string{strings.Join(labels, " "), parts[2]}
	}

	return found
}
