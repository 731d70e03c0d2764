package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/test/promql"
)

const (
	alertsFile = "../../resources/alerts.yaml"
	alertsPage = "../../docs/operator/alerts.md"
)

type alert struct {
	Alert, Record, Expr, For string
	Labels, Annotations      map[string]string
}

// loadAlerts returns the rules for an evaluation with samples of the test.
func loadAlerts(t *testing.T) *promql.Rules {
	t.Helper()

	content, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}

	loaded, err := promql.Load(content, promql.New())
	if err != nil {
		t.Fatal(err)
	}

	return loaded
}

// rules returns the recording rules and the alerts.
func rules(t *testing.T) (recorded, alerts []alert) {
	t.Helper()

	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}

	var file struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}

	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule.Record != "" {
				recorded = append(recorded, rule)
			} else {
				alerts = append(alerts, rule)
			}
		}
	}

	return recorded, alerts
}

// expression is the parsed expression of a rule.
type expression struct {
	metrics []*parser.VectorSelector
	// grouped lists the labels that remain after grouping. Nil means that all labels remain.
	grouped []string
}

func parse(t *testing.T, text string) expression {
	t.Helper()

	parsed, err := parser.ParseExpr(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}

	var found expression

	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch each := node.(type) {
		case *parser.VectorSelector:
			found.metrics = append(found.metrics, each)
		case *parser.AggregateExpr:
			found.grouped = append(found.grouped, each.Grouping...)

			if each.Without {
				t.Errorf("%s: group with by, so that the test knows the labels that remain", text)
			}
		}

		return nil
	})

	return found
}

// exposed maps the names of the metrics of both services to their labels and help texts.
func exposed(t *testing.T) map[string][]string {
	t.Helper()

	all := registered(t, brokerMetrics(t))
	maps.Copy(all, registered(t, provisionerMetrics(t)))

	return all
}

// TestAlertsMatchTheMetrics checks each rule against the metrics of the services. A rule for an unknown metric, or for a label
// value that never occurs, would never fire.
func TestAlertsMatchTheMetrics(t *testing.T) {
	all := exposed(t)
	recorded, alerts := rules(t)

	for _, rule := range slices.Concat(recorded, alerts) {
		t.Run(rule.Alert+rule.Record, func(t *testing.T) {
			parsed := parse(t, rule.Expr)
			if len(parsed.metrics) == 0 {
				t.Error("the expression has no metric")
			}

			left := slices.Clone(parsed.grouped)

			for _, metric := range parsed.metrics {
				labels := checkMetric(t, all, metric)

				for _, label := range parsed.grouped {
					if !slices.Contains(labels, label) {
						t.Errorf("grouped by %s, which %s does not have", label, metric.Name)
					}
				}

				if parsed.grouped == nil {
					left = append(left, labels...)
				}
			}

			if rule.Record != "" {
				all[rule.Record] = []string{strings.Join(left, " "), "recorded"}

				return
			}

			checkTexts(t, rule, left)
		})
	}
}

// checkMetric checks the filters of a metric and returns the metric's labels, including the labels that Prometheus adds.
func checkMetric(t *testing.T, all map[string][]string, metric *parser.VectorSelector) []string {
	t.Helper()

	name, isBucket := strings.CutSuffix(metric.Name, "_bucket")
	if _, known := all[name]; !known {
		name = strings.TrimSuffix(name, "_count")
	}

	found, known := all[name]
	if !known {
		t.Fatalf("no service has the metric %s", name)
	}

	labels := append(strings.Fields(found[0]), "job", "instance")
	if isBucket {
		labels = append(labels, "le")
	}

	for _, filter := range metric.LabelMatchers {
		if filter.Name == "__name__" {
			continue
		}

		if !slices.Contains(labels, filter.Name) {
			t.Errorf("%s has no label %s", name, filter.Name)
		}

		for value := range strings.SplitSeq(filter.Value, "|") {
			if !occurs(filter.Name, value, found[1]) {
				t.Errorf("%s never has the %s %q: %s", name, filter.Name, value, found[1])
			}
		}
	}

	return labels
}

// occurs reports whether a label can have the given value. The help text of the metric lists the values of most labels. The
// values of request labels and the bounds of histograms are compared with running services by test/e2e.
func occurs(label, value, help string) bool {
	switch label {
	case "method", "route", "status", "le":
		return true
	case "kind":
		return slices.Contains([]string{environment.KindProvision, environment.KindUpdate, environment.KindDeprovision}, value)
	case "system":
		return value == "gardener"
	case "state":
		ofAccount := strings.Contains(help, "account pool") && slices.Contains(accountpool.States(), accountpool.State(value))

		ofOrchestration := strings.Contains(help, "orchestrations") && environment.OrchestrationState(value).Stopped()

		return ofAccount || ofOrchestration || slices.Contains([]process.State{
			process.Pending, process.InProgress, process.Canceling, process.Failed, process.Succeeded,
		}, process.State(value))
	}

	isReason := func(meaning failure.ReasonMeaning) bool { return meaning.Reason == value }

	return strings.Contains(help, value) || slices.ContainsFunc(failure.Reasons(), isReason)
}

var shown = regexp.MustCompile(`\$labels\.(\w+)`)

// checkTexts checks the severity, the summary and the duration of a rule. The summary may use only labels that remain after
// grouping.
func checkTexts(t *testing.T, rule alert, labels []string) {
	t.Helper()

	if rule.Annotations["summary"] == "" || !slices.Contains([]string{"critical", "warning"}, rule.Labels["severity"]) {
		t.Errorf("no summary or no severity: annotations %v, labels %v", rule.Annotations, rule.Labels)
	}

	for _, label := range shown.FindAllStringSubmatch(rule.Annotations["summary"], -1) {
		if !slices.Contains(labels, label[1]) {
			t.Errorf("the summary uses the label %s, the expression has %v", label[1], labels)
		}
	}

	if _, err := time.ParseDuration(rule.For); rule.For != "" && err != nil {
		t.Errorf("invalid duration %q", rule.For)
	}
}

// TestAlertsAreDocumented checks that the page on alerts explains every rule with its severity, and no others.
func TestAlertsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(alertsPage)
	if err != nil {
		t.Fatal(err)
	}

	var explained, want []string

	table, _, _ := strings.Cut(string(page), "\n## ")
	words := func(cell string) []string {
		return strings.FieldsFunc(cell, func(r rune) bool { return r == ',' || r == ' ' })
	}

	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if len(cells) != 4 || strings.Contains(line, "---") {
			continue
		}

		severities := words(cells[1])
		for number, name := range words(cells[0]) {
			explained = append(explained, name+" "+severities[min(number, len(severities)-1)])
		}
	}

	_, alerts := rules(t)
	for _, rule := range alerts {
		want = append(want, rule.Alert+" "+rule.Labels["severity"])
	}

	if diff := cmp.Diff(append([]string{"alert severity"}, want...), explained); diff != "" {
		t.Errorf("%s does not match the rules, -want +got:\n%s", alertsPage, diff)
	}
}
