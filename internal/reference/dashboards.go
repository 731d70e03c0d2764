package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// dashboards returns the Grafana dashboards, keyed by file name without the extension. The dashboards of the services have a
// panel for each metric in the tables of the documentation. Tests compare these tables with the registries of the services.
func dashboards(docs string) (map[string]dashboard, error) {
	services, err := documentedMetrics(filepath.Join(docs, "operator/metrics.md"))
	if err != nil {
		return nil, err
	}

	bundler, err := documentedMetrics(filepath.Join(docs, "operator/bundles.md"))
	if err != nil {
		return nil, err
	}

	boards := map[string]dashboard{
		"overview":    newDashboard("overview", "Overview", overviewRows()),
		"slo":         newDashboard("slo", "Error budgets", budgetRows()),
		"broker":      newDashboard("broker", "Broker", append(requestRows(), metricRows(services, groups())...)),
		"provisioner": newDashboard("provisioner", "Provisioner", append(requestRows(), metricRows(services, sharedGroups())...)),
		"bundler":     newDashboard("bundler", "Bundle provisioner", metricRows(bundler, []metricGroup{{title: "Bundles", prefixes: []string{"bundle_"}}})),
	}

	for name, board := range boards {
		board.Panels = append(board.Panels, board.placed(processRow())...)
		boards[name] = board
	}

	return boards, nil
}

// writeDashboards writes a file for each dashboard to the folder.
func writeDashboards(docs, folder string) error {
	boards, err := dashboards(docs)
	if err != nil {
		return err
	}

	for name, board := range boards {
		content, err := board.json()
		if err != nil {
			return fmt.Errorf("encoding the dashboard %s: %w", name, err)
		}

		if err := os.WriteFile(filepath.Join(folder, name+".json"), content, 0o644); err != nil { //nolint:gosec // dashboards are public
			return fmt.Errorf("writing a dashboard: %w", err)
		}
	}

	return nil
}

// metric is a row of a metrics table in the documentation.
type metric struct {
	name, help string
	labels     []string
}

// namespace is the prefix of all metrics of the services.
const namespace = "environment_broker_"

// documentedMetrics returns the metrics in the table of a page, in the order of the table.
func documentedMetrics(page string) ([]metric, error) {
	content, err := os.ReadFile(page) //nolint:gosec // a page of this repository
	if err != nil {
		return nil, fmt.Errorf("reading the metrics: %w", err)
	}

	var found []metric

	for line := range strings.Lines(string(content)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")

		const columns = 3
		if name := strings.TrimSpace(cells[0]); len(cells) == columns && strings.HasPrefix(name, namespace) {
			labels := strings.FieldsFunc(cells[1], func(r rune) bool { return r == ',' || r == ' ' })
			found = append(found, metric{name: name, help: strings.TrimSpace(cells[2]), labels: labels})
		}
	}

	return found, nil
}

// These types are the part of Grafana's JSON model that the dashboards use. When Grafana imports a file, it sets the other fields
// to their defaults.
type (
	dashboard struct {
		UID           string     `json:"uid"`
		Title         string     `json:"title"`
		Tags          []string   `json:"tags"`
		SchemaVersion int        `json:"schemaVersion"`
		Editable      bool       `json:"editable"`
		Refresh       string     `json:"refresh"`
		Time          timeRange  `json:"time"`
		Templating    templating `json:"templating"`
		Panels        []panel    `json:"panels"`

		// height is the vertical position at which the next row starts.
		height int
	}
	timeRange struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	templating struct {
		List []variable `json:"list"`
	}
	variable struct {
		Name       string      `json:"name"`
		Label      string      `json:"label"`
		Type       string      `json:"type"`
		Query      string      `json:"query"`
		Datasource *datasource `json:"datasource,omitempty"`
		Refresh    int         `json:"refresh"`
		Multi      bool        `json:"multi,omitempty"`
		IncludeAll bool        `json:"includeAll,omitempty"`
		AllValue   string      `json:"allValue,omitempty"`
	}
	datasource struct {
		Type string `json:"type"`
		UID  string `json:"uid"`
	}
	panel struct {
		ID          int         `json:"id"`
		Type        string      `json:"type"`
		Title       string      `json:"title"`
		Description string      `json:"description,omitempty"`
		GridPos     gridPos     `json:"gridPos"`
		Datasource  *datasource `json:"datasource,omitempty"`
		FieldConfig *fields     `json:"fieldConfig,omitempty"`
		Targets     []target    `json:"targets,omitempty"`
	}
	gridPos struct {
		H int `json:"h"`
		W int `json:"w"`
		X int `json:"x"`
		Y int `json:"y"`
	}
	fields struct {
		Defaults struct {
			Unit string `json:"unit,omitempty"`
			Min  int    `json:"min"`
		} `json:"defaults"`
	}
	target struct {
		RefID        string      `json:"refId"`
		Expr         string      `json:"expr"`
		LegendFormat string      `json:"legendFormat"`
		Datasource   *datasource `json:"datasource"`
	}
)

// schemaVersion is the version of Grafana's JSON model since Grafana 11.
const schemaVersion = 39

// prometheusSource refers to the data source that the user selects on the dashboard.
func prometheusSource() *datasource { return &datasource{Type: "prometheus", UID: "${datasource}"} }

// newDashboard returns a dashboard with the rows, and with variables for the data source and the jobs.
func newDashboard(uid, title string, rows []row) dashboard {
	const onTimeRangeChange = 2

	board := dashboard{
		UID: "environment-broker-" + uid, Title: "Environment broker: " + title, Tags: []string{"environment-broker"},
		SchemaVersion: schemaVersion, Refresh: "30s", Time: timeRange{From: "now-6h", To: "now"},
		Templating: templating{List: []variable{
			{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus", Refresh: 1},
			{
				Name: "job", Label: "Job", Type: "query", Query: "label_values(" + namespace + "build_info, job)", Datasource: prometheusSource(),
				Refresh: onTimeRangeChange, Multi: true, IncludeAll: true, AllValue: ".+",
			},
		}},
	}

	for _, each := range rows {
		board.Panels = append(board.Panels, board.placed(each)...)
	}

	return board
}

// row is a titled row of graphs.
type row struct {
	title  string
	graphs []graph
}

// graph is a panel with one or more queries.
type graph struct {
	title, help, unit string
	// queries contains pairs of a query and its legend.
	queries [][2]string
}

// placed returns the panels of a row. Their positions are below the existing panels, with two graphs per line.
func (d *dashboard) placed(each row) []panel {
	const (
		width, height = 12, 8
		perLine       = 2
	)

	next := len(d.Panels) + 1
	panels := []panel{{ID: next, Type: "row", Title: each.title, GridPos: gridPos{H: 1, W: width * perLine, Y: d.height}}}
	d.height++

	for i, one := range each.graphs {
		made := panel{
			ID: next + i + 1, Type: "timeseries", Title: one.title, Description: one.help, Datasource: prometheusSource(), FieldConfig: &fields{},
			GridPos: gridPos{H: height, W: width, X: i % perLine * width, Y: d.height + i/perLine*height},
		}
		made.FieldConfig.Defaults.Unit = one.unit

		for number, query := range one.queries {
			made.Targets = append(made.Targets, target{
				RefID: string(rune('A' + number)), Expr: query[0], LegendFormat: query[1], Datasource: prometheusSource(),
			})
		}

		panels = append(panels, made)
	}

	d.height += (len(each.graphs) + 1) / perLine * height

	return panels
}

// json returns the content of the dashboard file.
func (d dashboard) json() ([]byte, error) {
	var content bytes.Buffer

	encoder := json.NewEncoder(&content)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")

	err := encoder.Encode(d)

	return content.Bytes(), err
}

// metricGroup is a row of a dashboard: the metrics whose names, without the namespace, start with one of the prefixes.
type metricGroup struct {
	title    string
	prefixes []string
	// shared is true for metrics of both services. The broker alone has the others.
	shared bool
}

// has reports whether the metric with the given name belongs to the group.
func (g metricGroup) has(name string) bool {
	return slices.ContainsFunc(g.prefixes, func(prefix string) bool { return strings.HasPrefix(name, namespace+prefix) })
}

// groups returns the rows of the broker dashboard.
func groups() []metricGroup {
	return []metricGroup{
		{"Requests", []string{"http_", "requests_refused_"}, true},
		{"Engine", []string{"engine_"}, true},
		{"Upstream systems", []string{"upstream_"}, true},
		{"Audit log and keys", []string{"audit_", "sealed_", "unreadable_", "reencrypted_"}, true},
		{"Files and certificates", []string{"files_", "certificate_", "build_info"}, true},
		{"Catalog and polls", []string{"catalog_", "poll_", "event_streams"}, false},
		{"Orchestrations and jobs", []string{"orchestration", "job_"}, false},
		{"Leftovers and differences", []string{"leftovers", "differences", "runtimes_left_over_"}, false},
		{"Accounts and quotas", []string{"pool_", "quota_"}, false},
		{"Kubeconfigs and credentials", []string{"kubeconfig", "service_manager_"}, false},
		{"Webhooks and notifications", []string{"webhook", "notifications_"}, false},
	}
}

// sharedGroups returns the rows of the Provisioner dashboard.
func sharedGroups() []metricGroup {
	return slices.DeleteFunc(groups(), func(one metricGroup) bool { return !one.shared })
}

// metricRows returns a row for each group, with a graph for each metric.
func metricRows(metrics []metric, groups []metricGroup) []row {
	rows := make([]row, 0, len(groups))

	for _, group := range groups {
		one := row{title: group.title}

		for _, each := range metrics {
			if group.has(each.name) {
				one.graphs = append(one.graphs, each.graph())
			}
		}

		rows = append(rows, one)
	}

	return rows
}
