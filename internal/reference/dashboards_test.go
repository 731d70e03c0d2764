package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"
)

const docsFolder, dashboardsFolder = "../../docs", "../../resources/dashboards"

// shownMetrics returns the names of the metrics in the queries of a dashboard, without the suffixes of histograms.
func shownMetrics(t *testing.T, board dashboard) map[string]bool {
	t.Helper()

	shown := map[string]bool{}

	for _, each := range board.Panels {
		for _, one := range each.Targets {
			parsed, err := parser.ParseExpr(strings.ReplaceAll(one.Expr, "$__rate_interval", "5m"))
			if err != nil {
				t.Fatalf("%s: %s: %v", board.Title, one.Expr, err)
			}

			parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
				if selector, is := node.(*parser.VectorSelector); is {
					shown[strings.TrimSuffix(selector.Name, "_bucket")] = true
				}

				return nil
			})
		}
	}

	return shown
}

// TestDashboardsShowEveryMetric compares the dashboards with the registries of the services.
func TestDashboardsShowEveryMetric(t *testing.T) {
	boards, err := dashboards(docsFolder)
	if err != nil {
		t.Fatal(err)
	}

	for name, exposed := range map[string]map[string][]string{
		"broker": registered(t, brokerMetrics(t)), "provisioner": registered(t, provisionerMetrics(t)),
	} {
		shown := shownMetrics(t, boards[name])

		for metric := range exposed {
			if !shown[metric] {
				t.Errorf("the dashboard %s does not show %s: add its prefix to groups in dashboards.go, then run `make generate`", name, metric)
			}
		}

		for metric := range shown {
			if strings.HasPrefix(metric, namespace) && exposed[metric] == nil {
				t.Errorf("the dashboard %s shows %s, which the service does not have", name, metric)
			}
		}
	}

	if shown := shownMetrics(t, boards["bundler"]); len(shown) < 9 {
		t.Errorf("the dashboard of the bundle provisioner shows only %v", shown)
	}
}

// TestDashboardsAreUpToDate fails if a metric was changed without running `make generate`.
func TestDashboardsAreUpToDate(t *testing.T) {
	boards, err := dashboards(docsFolder)
	if err != nil {
		t.Fatal(err)
	}

	var names, files []string

	for name, board := range boards {
		names = append(names, name+".json")

		want, err := board.json()
		if err != nil {
			t.Fatal(err)
		}

		got, err := os.ReadFile(filepath.Join(dashboardsFolder, name+".json"))
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is outdated, run `make generate`: -code +file\n%s", name, diff)
		}

		checkPanels(t, board)
	}

	found, err := os.ReadDir(dashboardsFolder)
	if err != nil {
		t.Fatal(err)
	}

	for _, file := range found {
		files = append(files, file.Name())
	}

	slices.Sort(names)

	if diff := cmp.Diff(names, files); diff != "" {
		t.Errorf("-dashboards +files\n%s", diff)
	}
}

// checkPanels checks that the panels of a dashboard have different IDs and do not overlap.
func checkPanels(t *testing.T, board dashboard) {
	t.Helper()

	ids, places := map[int]bool{}, map[[2]int]string{}

	for _, each := range board.Panels {
		if ids[each.ID] {
			t.Errorf("%s: two panels have the ID %d", board.Title, each.ID)
		}

		ids[each.ID] = true

		for x := each.GridPos.X; x < each.GridPos.X+each.GridPos.W; x++ {
			for y := each.GridPos.Y; y < each.GridPos.Y+each.GridPos.H; y++ {
				if other := places[[2]int{x, y}]; other != "" {
					t.Fatalf("%s: %q is on top of %q", board.Title, each.Title, other)
				}

				places[[2]int{x, y}] = each.Title
			}
		}
	}
}
