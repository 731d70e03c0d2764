package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/environment-broker/environment-broker/test/promql"
)

// budgets is the group of the rules on error budgets.
const budgets = "environment-broker-budgets"

// Intervals between scrapes and between evaluations. Both are longer than usual, so that the test is fast.
const (
	scrape   = 2 * time.Minute
	interval = 10 * time.Minute
)

// traffic counts the requests and the operations of a service between two scrapes.
type traffic struct {
	// accepted counts requests without an error, and refused counts requests with an error. slow counts the requests of both
	// kinds that take more than a second.
	accepted, refused, slow float64
	// done counts operations that succeed within an hour, and failed counts failed ones.
	done, failed float64
}

// series adds the counters of a service to samples.
type series struct {
	samples *promql.Samples
	totals  traffic
}

func (s *series) add(at time.Time, more traffic) {
	s.totals = traffic{
		s.totals.accepted + more.accepted, s.totals.refused + more.refused, s.totals.slow + more.slow, s.totals.done + more.done, s.totals.failed + more.failed,
	}

	request := []string{"job", "broker", "method", "PUT", "route", "/oauth/v2/service_instances/{instance_id}"}
	operation := []string{"job", "broker", "kind", "provision"}
	all := s.totals.accepted + s.totals.refused

	for _, one := range []struct {
		name   string
		labels []string
		more   []string
		value  float64
	}{
		{"environment_broker_http_requests_total", request, []string{"status", "202"}, s.totals.accepted},
		{"environment_broker_http_requests_total", request, []string{"status", "500"}, s.totals.refused},
		{"environment_broker_http_request_duration_seconds_bucket", request, []string{"le", "1"}, all - s.totals.slow},
		{"environment_broker_http_request_duration_seconds_count", request, nil, all},
		{"environment_broker_engine_operation_duration_seconds_bucket", operation, []string{"state", "succeeded", "le", "3600"}, s.totals.done},
		{"environment_broker_engine_operation_duration_seconds_count", operation, []string{"state", "succeeded"}, s.totals.done},
		{"environment_broker_engine_operation_duration_seconds_count", operation, []string{"state", "failed"}, s.totals.failed},
	} {
		s.samples.Add(at, labels.FromStrings(slices.Concat([]string{"__name__", one.name}, one.labels, one.more)...), one.value)
	}
}

// TestBudgetAlerts evaluates the rules on error budgets with Prometheus' engine. The service first has healthy traffic, and then
// the traffic of the test case.
func TestBudgetAlerts(t *testing.T) {
	t.Parallel()

	healthy := traffic{accepted: 1000, done: 100}

	for name, test := range map[string]struct {
		reason string
		then   traffic
		during time.Duration
		// want lists the alerts that fire at the end, and wantSoon those that fire after 20 minutes.
		wantSoon, want []string
	}{
		"WithinGoal": {"one request in 2000 fails, half of the budget", traffic{accepted: 1999, refused: 1, slow: 1, done: 100}, 3 * time.Hour, nil, nil},
		"Down": {
			"every request fails: a budget is used up within 43 minutes",
			traffic{refused: 1000, done: 100},
			22 * time.Minute,
			[]string{"AcceptErrorsBurnFast", "AcceptErrorsBurnSlow"},
			[]string{"AcceptErrorsBurnFast", "AcceptErrorsBurnSlow"},
		},
		"Errors": {
			"2 % fail: not within minutes, but within the hour",
			traffic{accepted: 980, refused: 20, done: 100},
			90 * time.Minute,
			nil,
			[]string{"AcceptErrorsBurnFast", "AcceptErrorsBurnSlow"},
		},
		"SlowErrors": {
			"0.4 % fail: the slow alert, after hours",
			traffic{accepted: 996, refused: 4, done: 100},
			8 * time.Hour,
			nil,
			[]string{"AcceptErrorsBurnSlow"},
		},
		"Slow": {
			"every request takes seconds",
			traffic{accepted: 1000, slow: 1000, done: 100},
			22 * time.Minute,
			[]string{"AcceptLatencyBurnFast", "AcceptLatencyBurnSlow"},
			[]string{"AcceptLatencyBurnFast", "AcceptLatencyBurnSlow"},
		},
		"OperationsFail": {
			"all operations fail, so few requests succeed that nothing else is known",
			traffic{accepted: 1000, failed: 100},
			2 * time.Hour,
			nil,
			[]string{"OperationsBurnFast", "OperationsBurnSlow"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			rules := loadAlerts(t)

			counters := series{samples: rules.Samples}
			start := time.Unix(0, 0)

			var firing []string

			run := func(from, until time.Duration, each traffic) {
				for after := from; after < until; after += scrape {
					counters.add(start.Add(after), each)

					if after%interval != 0 {
						continue
					}

					var err error
					if firing, err = rules.Evaluate(t.Context(), budgets, start.Add(after)); err != nil {
						t.Fatal(err)
					}
				}
			}

			const before = 4 * time.Hour

			run(0, before, healthy)

			if firing != nil {
				t.Errorf("%s: %v fire before the change", test.reason, firing)
			}

			soon := min(test.during, 22*time.Minute)
			run(before, before+soon, test.then)

			if diff := cmp.Diff(test.wantSoon, firing); diff != "" {
				t.Errorf("%s: after 20 minutes, -want +got\n%s", test.reason, diff)
			}

			run(before+soon, before+test.during, test.then)

			if diff := cmp.Diff(test.want, firing); diff != "" {
				t.Errorf("%s: at the end, -want +got\n%s", test.reason, diff)
			}
		})
	}
}

// runbooks is the prefix of runbook URLs, which refer to files of the repository.
const runbooks = "https://github.com/environment-broker/environment-broker/blob/main/"

// TestRunbooks checks that the alerts on budgets link to runbooks, and that the page and the section of each link exist.
func TestRunbooks(t *testing.T) {
	t.Parallel()

	_, alerts := rules(t)
	linked := 0

	for _, rule := range alerts {
		runbook := rule.Annotations["runbook_url"]
		if runbook == "" {
			if regexp.MustCompile(`Burn(Fast|Slow)$`).MatchString(rule.Alert) {
				t.Errorf("%s has no runbook", rule.Alert)
			}

			continue
		}

		linked++

		page, section, _ := strings.Cut(strings.TrimPrefix(runbook, runbooks), "#")

		content, err := os.ReadFile(filepath.Join("../..", page))
		if err != nil || !strings.HasPrefix(runbook, runbooks) {
			t.Errorf("%s: the runbook %s does not exist: %v", rule.Alert, runbook, err)

			continue
		}

		var sections []string

		for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllSubmatch(content, -1) {
			words := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(string(heading[1])), "")
			sections = append(sections, strings.ReplaceAll(words, " ", "-"))
		}

		if !slices.Contains(sections, section) {
			t.Errorf("%s: %s has no section %q", rule.Alert, page, section)
		}

		// The page must also have a table row that names the alert.
		if !regexp.MustCompile(`(?m)^\| [^|]*\b` + rule.Alert + `\b`).Match(content) {
			t.Errorf("%s: %s does not describe the alert", rule.Alert, page)
		}
	}

	if linked == 0 {
		t.Error("no alert links to a runbook")
	}
}
