package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/accountpool"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

const (
	alertsFile = "../../resources/alerts.yaml"
	alertsPage = "../../docs/operator/alerts.md"
)

type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func alerts(t *testing.T) []alert {
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

	var all []alert
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}

	return all
}

// expression is the parsed expression of a rule.
type expression struct {
	metrics []*metricsql.MetricExpr
	// grouped lists the labels that remain after grouping. Nil means that all labels remain.
	grouped []string
	// unsupported lists functions that Prometheus rejects although the parser accepts them. The parser's language is a superset
	// of PromQL.
	unsupported []string
}

func parse(t *testing.T, text string) expression {
	t.Helper()

	parsed, err := metricsql.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}

	var found expression

	metricsql.VisitAll(parsed, func(each metricsql.Expr) {
		switch each := each.(type) {
		case *metricsql.MetricExpr:
			found.metrics = append(found.metrics, each)
		case *metricsql.AggrFuncExpr:
			found.grouped = append(found.grouped, each.Modifier.Args...)

			if !slices.Contains([]string{"sum", "max"}, each.Name) || each.Modifier.Op != "by" {
				found.unsupported = append(found.unsupported, each.Name)
			}
		case *metricsql.FuncExpr:
			window, ranged := each.Args[:0:0], slices.Contains([]string{"rate", "increase"}, each.Name)
			for _, argument := range each.Args {
				if rollup, is := argument.(*metricsql.RollupExpr); is && rollup.Window != nil {
					window = append(window, argument)
				}
			}

			if !ranged && !slices.Contains([]string{"absent", "histogram_quantile", "time"}, each.Name) || ranged != (len(window) == 1) {
				found.unsupported = append(found.unsupported, each.Name)
			}
		}
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

	for _, rule := range alerts(t) {
		t.Run(rule.Alert, func(t *testing.T) {
			parsed := parse(t, rule.Expr)
			if len(parsed.unsupported) > 0 || len(parsed.metrics) == 0 {
				t.Errorf("the expression has unsupported functions %v, or no metric: %d metrics", parsed.unsupported, len(parsed.metrics))
			}

			left := slices.Clone(parsed.grouped)

			for _, metric := range parsed.metrics {
				labels := checkMetric(t, all, metric)

				for _, label := range parsed.grouped {
					if !slices.Contains(labels, label) {
						t.Errorf("grouped by %s, which %s does not have", label, metric.LabelFilterss[0][0].Value)
					}
				}

				if parsed.grouped == nil {
					left = append(left, labels...)
				}
			}

			checkTexts(t, rule, left)
		})
	}
}

// checkMetric checks the filters of a metric and returns the metric's labels, including the labels that Prometheus adds.
func checkMetric(t *testing.T, all map[string][]string, metric *metricsql.MetricExpr) []string {
	t.Helper()

	filters := metric.LabelFilterss[0]
	name, isBucket := strings.CutSuffix(filters[0].Value, "_bucket")

	found, known := all[name]
	if !known {
		t.Fatalf("no service has the metric %s", name)
	}

	labels := append(strings.Fields(found[0]), "job", "instance")
	if isBucket {
		labels = append(labels, "le")
	}

	for _, filter := range filters[1:] {
		if !slices.Contains(labels, filter.Label) {
			t.Errorf("%s has no label %s", name, filter.Label)
		}

		if !occurs(filter, found[1]) {
			t.Errorf("%s never has the %s %q: %s", name, filter.Label, filter.Value, found[1])
		}
	}

	return labels
}

// occurs reports whether a label can have the value of the filter. The help text of the metric lists the values of most
// labels.
func occurs(filter metricsql.LabelFilter, help string) bool {
	switch filter.Label {
	case "system":
		return filter.Value == "gardener"
	case "state":
		ofAccount := strings.Contains(help, "account pool") && slices.Contains(accountpool.States(), accountpool.State(filter.Value))

		ofOrchestration := strings.Contains(help, "orchestrations") && environment.OrchestrationState(filter.Value).Stopped()

		return ofAccount || ofOrchestration || slices.Contains([]process.State{process.Pending, process.InProgress, process.Canceling, process.Failed}, process.State(filter.Value))
	}

	isReason := func(meaning failure.ReasonMeaning) bool { return meaning.Reason == filter.Value }

	return strings.Contains(help, filter.Value) || slices.ContainsFunc(failure.Reasons(), isReason)
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

// TestAlertsAreDocumented checks that the page of the alerts explains every rule and no others.
func TestAlertsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(alertsPage)
	if err != nil {
		t.Fatal(err)
	}

	var explained, want []string

	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(strings.Trim(line, "|\n"), "|"); len(cells) == 3 && !strings.Contains(line, "---") {
			explained = append(explained, strings.FieldsFunc(cells[0], func(r rune) bool { return r == ',' || r == ' ' })...)
		}
	}

	for _, rule := range alerts(t) {
		want = append(want, rule.Alert)
	}

	if diff := cmp.Diff(append([]string{"alert"}, want...), explained); diff != "" {
		t.Errorf("%s does not match the rules, -want +got:\n%s", alertsPage, diff)
	}
}
