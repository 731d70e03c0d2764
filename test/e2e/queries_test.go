package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/environment-broker/environment-broker/internal/sandbox"
	"github.com/environment-broker/environment-broker/test/harness"
	"github.com/environment-broker/environment-broker/test/promql"
)

// withoutSeries maps metrics that have no series in the sandbox to the reasons. A query that uses only such metrics returns nothing.
func withoutSeries() map[string]string {
	return map[string]string{
		"environment_broker_requests_refused_total":         "no request is rejected",
		"environment_broker_engine_operations_failed_total": "no operation fails",
		"environment_broker_leftovers":                      "nothing is left over",
		"environment_broker_leftovers_oldest_seconds":       "nothing is left over",
		"environment_broker_quota_highest_ratio":            "no quota is configured",
		"environment_broker_quota_refusals_total":           "no quota is configured",
		"environment_broker_kubeconfigs":                    "no system needs kubeconfigs",
		"environment_broker_kubeconfigs_expiring":           "no system needs kubeconfigs",
		"environment_broker_kubeconfig_renewals_total":      "no system needs kubeconfigs",
		"environment_broker_orchestrations":                 "there is no orchestration",
		"environment_broker_orchestration_targets":          "there is no orchestration",
		"environment_broker_pool_dirty_oldest_seconds":      "no account is dirty",
		"environment_broker_pool_shared_instances":          "no account is shared",
		"environment_broker_bundle_unpacks_total":           "there is no Bundle",
		"environment_broker_bundle_unpack_duration_seconds": "there is no Bundle",
	}
}

// laterSeries maps metrics that may not have any series yet, depending on the speed of the machine, to the reasons.
func laterSeries() map[string]string {
	const (
		report = "the first report comes minutes after the start"
		ended  = "no operation may be unfinished"
	)

	return map[string]string{
		"environment_broker_engine_operations_unfinished": ended, "environment_broker_engine_operations_oldest_seconds": ended,
		"environment_broker_engine_leases": ended,
		"environment_broker_job_due":       report, "environment_broker_job_failing": report, "environment_broker_job_held": report,
		"environment_broker_job_last_run_timestamp_seconds": report, "environment_broker_job_items_total": report,
		"environment_broker_pool_accounts": report, "environment_broker_pool_timestamp_seconds": report,
		"environment_broker_differences": report, "environment_broker_differences_not_compared": report,
		"environment_broker_differences_timestamp_seconds": report,
	}
}

// TestQueries runs the three services in a sandbox, orders an instance, scrapes their metrics twice, and evaluates every query of the dashboards
// and every rule with Prometheus' engine. A query must return a result unless withoutSeries or laterSeries explains why its metrics have no
// series.
func TestQueries(t *testing.T) {
	t.Parallel()

	samples := scraped(t)

	rules, err := os.ReadFile("../../resources/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}

	loaded, err := promql.Load(rules, samples.Samples)
	if err != nil {
		t.Fatal(err)
	}

	unused := withoutSeries()

	for _, rule := range loaded.All() {
		samples.checkRule(t, rule.Record, rule.Alert, rule.Expr, unused)
	}

	files, err := filepath.Glob("../../resources/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}

	for _, file := range files {
		for _, query := range queriesOf(t, file) {
			vector, err := samples.Query(t.Context(), query, samples.at)
			if err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(file), query, err)
			}

			if len(vector) == 0 && !samples.explained(t, query, unused) {
				t.Errorf("%s: no result: %s", filepath.Base(file), query)
			}
		}
	}

	for name := range unused {
		t.Errorf("withoutSeries explains %s, but no query needs it", name)
	}
}

// sampled contains the metrics of the sandbox's services. at is the time of the last scrape.
type sampled struct {
	*promql.Samples

	at time.Time
	// known maps metrics without series to the reasons.
	known map[string]string
}

// scraped runs a sandbox, scrapes the metrics of its services and returns them.
func scraped(t *testing.T) sampled {
	t.Helper()

	path, bundler := harness.Build(t, "sandbox"), harness.Build(t, "bundler")
	address := harness.FreeAddress(t)
	status := map[string]string{"broker": harness.FreeAddress(t), "provisioner": harness.FreeAddress(t), "bundler": harness.FreeAddress(t)}

	running := harness.Launch(t, []string{
		"SANDBOX_DIR=" + t.TempDir(), "SANDBOX_CLUSTER_CREATION=1s", "SANDBOX_BROKER_ADDRESS=" + address, "SANDBOX_PROVISIONER_ADDRESS=127.0.0.1:0",
		"SANDBOX_STATUS_ADDRESS=" + status["broker"], "SANDBOX_PROVISIONER_STATUS_ADDRESS=" + status["provisioner"],
		"SANDBOX_BUNDLES_ADDRESS=" + harness.FreeAddress(t), "SANDBOX_BUNDLES_STATUS_ADDRESS=" + status["bundler"],
	}, path, "--bundler=exec "+bundler)
	if line := running.Line(); !strings.HasPrefix(line, "sandbox ready") {
		t.Fatalf("the first line of the sandbox is %q", line)
	}

	p := newPlatform(t, "http://"+address)
	p.User, p.Password = sandbox.User, sandbox.Password

	samples := sampled{Samples: promql.New(), at: time.Unix(0, 0), known: withoutSeries()}
	maps.Copy(samples.known, laterSeries())

	for _, instance := range []string{"first", "second"} {
		p.Create(instance, harness.PlanAWS)
		p.WantSucceeded(instance)
		p.Send(http.MethodGet, "/runtimes/unknown", nil, http.StatusNotFound)

		samples.at = samples.at.Add(time.Minute)

		for job, address := range status {
			var text string

			p.Until("the metrics of the "+job, func() bool {
				reply, err := harness.Endpoint{URL: "http://" + address}.Do(harness.Call{Method: http.MethodGet, Path: "/metrics"})
				text = reply.Raw

				return err == nil && reply.Status == http.StatusOK
			})

			if err := samples.Scrape(samples.at, []byte(text), job, address); err != nil {
				t.Fatal(err)
			}
		}
	}

	return samples
}

// checkRule evaluates a rule. An alert must not fire, and each metric of its expression must have series unless its absence is
// explained.
func (s sampled) checkRule(t *testing.T, record, alert, expression string, unused map[string]string) {
	t.Helper()

	vector, err := s.Query(t.Context(), expression, s.at)
	if err != nil {
		t.Errorf("%s%s: %v", record, alert, err)
	}

	if alert != "" && len(vector) > 0 && alert != "OperationsFailInternally" {
		t.Errorf("%s fires in a healthy sandbox: %v", alert, vector)
	}

	if alert != "" {
		s.explained(t, expression, unused)

		return
	}

	if len(vector) == 0 {
		t.Errorf("%s: no result", record)
	}

	for _, one := range vector {
		s.Add(s.at, labels.NewBuilder(one.Metric).Set(model.MetricNameLabel, record).Labels(), one.F)
	}
}

// explained reports whether the query uses a metric without series for which known gives a reason. It removes the reasons that it
// uses from unused. A metric that has neither series nor a reason fails the test.
func (s sampled) explained(t *testing.T, query string, unused map[string]string) bool {
	t.Helper()

	parsed, err := parser.ParseExpr(query)
	if err != nil {
		t.Fatal(err)
	}

	needed := false

	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		selector, is := node.(*parser.VectorSelector)
		if !is {
			return nil
		}

		name := strings.TrimSuffix(strings.TrimSuffix(selector.Name, "_bucket"), "_count")

		// The label values in a query need not occur in the sandbox, except for histogram bounds.
		bare := selector.Name
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name == "le" {
				bare = fmt.Sprintf("%s{le=%q}", selector.Name, matcher.Value)
			}
		}

		vector, err := s.Query(t.Context(), bare, s.at)

		switch {
		case err != nil:
			t.Errorf("%s: %v", bare, err)
		case len(vector) > 0:
		case s.known[name] == "":
			t.Errorf("%s has no series; the query needs one: %s", bare, query)
		default:
			needed = true

			delete(unused, name)
		}

		return nil
	})

	return needed
}

var rateInterval = regexp.MustCompile(`\$__rate_interval`)

// queriesOf returns the queries of a dashboard, with its variables replaced as Grafana does.
func queriesOf(t *testing.T, file string) []string {
	t.Helper()

	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	var board struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(content, &board); err != nil {
		t.Fatal(err)
	}

	var queries []string

	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, rateInterval.ReplaceAllString(strings.ReplaceAll(target.Expr, "$job", ".+"), "5m"))
		}
	}

	if len(queries) == 0 {
		t.Fatalf("%s has no queries", file)
	}

	slices.Sort(queries)

	return slices.Compact(queries)
}
