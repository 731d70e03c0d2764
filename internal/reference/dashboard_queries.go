package main

import (
	"fmt"
	"strings"
)

// selected is the label selector for the jobs that the user selects on the dashboard.
const selected = `{job=~"$job"}`

// unitNumber is Grafana's unit for plain numbers.
const unitNumber = "short"

// histogram reports whether the metric is a histogram. It recognizes histograms by their names, because the documentation does
// not contain the types of metrics.
func (m metric) histogram() bool {
	return strings.HasSuffix(m.name, "_duration_seconds") || strings.HasSuffix(m.name, "pickup_delay_seconds")
}

// graph returns the panel of a metric. Counters are shown as rates, histograms as quantiles, and timestamps as ages. Metrics that
// each replica reports for the whole service are shown once; others are summed over the replicas.
func (m metric) graph() graph {
	title := strings.TrimPrefix(m.name, namespace)
	by := strings.Join(m.labels, ", ")
	made := graph{title: title, help: m.help, unit: unitNumber}

	var legend []string
	for _, label := range m.labels {
		legend = append(legend, "{{"+label+"}}")
	}

	add := func(query, name string) {
		made.queries = append(made.queries, [2]string{query, strings.TrimSpace(strings.Join(append(legend, name), " "))})
	}
	sum := func(function string) string {
		if by == "" {
			return function + "(" + m.name + selected + ")"
		}

		return fmt.Sprintf("%s by (%s) (%s%s)", function, by, m.name, selected)
	}

	switch {
	case m.histogram():
		made.unit = "s"

		quantiles := []string{"0.5", "0.95", "0.99"}
		if len(m.labels) > 1 {
			quantiles = quantiles[1:2] // one line for each combination of labels
		}

		for _, quantile := range quantiles {
			add(quantileOf(quantile, m.name, m.labels), "p"+strings.TrimPrefix(quantile, "0."))
		}
	case strings.HasSuffix(m.name, "_total"):
		made.unit = "ops"

		if by == "" {
			add(fmt.Sprintf("sum(rate(%s%s[$__rate_interval]))", m.name, selected), "")
		} else {
			add(fmt.Sprintf("sum by (%s) (rate(%s%s[$__rate_interval]))", by, m.name, selected), "")
		}
	case strings.HasSuffix(m.name, "_expiry_timestamp_seconds"):
		made.unit, made.title = "s", title+" (time left)"

		add(sum("min")+" - time()", "")
	case strings.HasSuffix(m.name, "_timestamp_seconds"):
		made.unit, made.title = "s", title+" (age)"

		add("time() - "+sum("max"), "")
	case strings.HasSuffix(m.name, "_breaker_state"):
		by += ", instance"
		legend = append(legend, "{{instance}}")

		add(sum("max"), "")
	default:
		switch {
		case strings.HasSuffix(m.name, "_seconds"):
			made.unit = "s"
		case strings.HasSuffix(m.name, "_ratio"):
			made.unit = "percentunit"
		}

		function := "sum"
		if made.unit != unitNumber || strings.HasPrefix(m.help, "1 ") || strings.Contains(m.help, "All replicas report the same value") || strings.Contains(m.help, "all replicas") {
			function = "max"
		}

		add(sum(function), "")
	}

	return made
}

// quantileOf returns the query for a quantile of a histogram, grouped by the given labels.
func quantileOf(quantile, name string, by []string) string {
	return fmt.Sprintf("histogram_quantile(%s, sum by (%s) (rate(%s_bucket%s[$__rate_interval])))",
		quantile, strings.Join(append([]string{"le"}, by...), ", "), name, selected)
}

// requestRows returns rows with the rate, the errors and the duration of requests by route, for the Open Service Broker API, the
// operator API and GraphQL.
func requestRows() []row {
	const (
		requests = namespace + "http_requests_total"
		duration = namespace + "http_request_duration_seconds"
	)

	rate := func(filter string) string {
		return fmt.Sprintf(`sum by (method, route) (rate(%s{job=~"$job"%s}[$__rate_interval]))`, requests, filter)
	}

	return []row{{title: "Rate, errors and duration by route", graphs: []graph{
		{title: "Requests", unit: "reqps", queries: [][2]string{{rate(""), "{{method}} {{route}}"}}},
		{
			title: "Share of errors", unit: "percentunit", help: "Status 5xx.",
			queries: [][2]string{{"(" + rate(`,status=~"5.."`) + " or 0 * " + rate("") + ") / (" + rate("") + " > 0)", "{{method}} {{route}}"}},
		},
		{
			title: "Duration, 95th percentile", unit: "s",
			queries: [][2]string{{quantileOf("0.95", duration, []string{"method", "route"}), "{{method}} {{route}}"}},
		},
		{
			title: "Rejected requests", unit: "reqps", help: "Status 4xx.",
			queries: [][2]string{{rate(`,status=~"4.."`), "{{method}} {{route}}"}},
		},
	}}}
}

// overviewRows returns rows that show the state of the services at a glance.
func overviewRows() []row {
	engine, upstream := namespace+"engine_", namespace+"upstream_"

	return []row{
		{"Operations", []graph{
			{title: "Unfinished", help: "Operations in the database.", unit: unitNumber, queries: [][2]string{{"max by (job, kind, state) (" + engine + "operations_unfinished" + selected + ")", "{{job}} {{kind}} {{state}}"}}},
			{title: "Age of the oldest", unit: "s", queries: [][2]string{{"max by (job, kind, state) (" + engine + "operations_oldest_seconds" + selected + ")", "{{job}} {{kind}} {{state}}"}}},
			{title: "Ended", help: "Operations that ended, per second.", unit: "ops", queries: [][2]string{{"sum by (job, kind, state) (rate(" + engine + "operations_ended_total" + selected + "[$__rate_interval]))", "{{job}} {{kind}} {{state}}"}}},
			{title: "Duration of operations, 95th percentile", unit: "s", queries: [][2]string{{quantileOf("0.95", engine+"operation_duration_seconds", []string{"job", "kind", "state"}), "{{job}} {{kind}} {{state}}"}}},
		}},
		{"Queue, workers and leases", []graph{
			{title: "Running operations", help: "Busy workers.", unit: unitNumber, queries: [][2]string{{"sum by (job, instance) (" + engine + "operations_running" + selected + ")", "{{job}} {{instance}}"}}},
			{title: "Leases", help: "held: a replica runs the operation. expired: the replica has stopped, and another replica will take over the operation.", unit: unitNumber, queries: [][2]string{{"max by (job, kind, state) (" + engine + "leases" + selected + ")", "{{job}} {{kind}} {{state}}"}}},
			{title: "Delay until a worker takes a due operation, 95th percentile", unit: "s", queries: [][2]string{{quantileOf("0.95", engine+"pickup_delay_seconds", []string{"job", "kind"}), "{{job}} {{kind}}"}}},
			{title: "Lost leases", unit: "ops", queries: [][2]string{{"sum by (job) (rate(" + engine + "leases_lost_total" + selected + "[$__rate_interval]))", "{{job}}"}}},
			{title: "Failed claims", help: "Failed attempts to find or claim due operations, because the database does not respond.", unit: "ops", queries: [][2]string{{"sum by (job) (rate(" + engine + "claims_failed_total" + selected + "[$__rate_interval]))", "{{job}}"}}},
		}},
		{"Steps", []graph{
			{title: "Slowest steps, 95th percentile", help: "Duration of attempts.", unit: "s", queries: [][2]string{{"topk(10, " + quantileOf("0.95", engine+"step_duration_seconds", []string{"job", "kind", "step"}) + ")", "{{job}} {{kind}} {{step}}"}}},
			{title: "Attempts by outcome", unit: "ops", queries: [][2]string{{"sum by (job, outcome) (rate(" + engine + "step_attempts_total" + selected + "[$__rate_interval]))", "{{job}} {{outcome}}"}}},
		}},
		{"Upstream systems", []graph{
			{title: "Circuit breakers", help: "0: closed, 1: half-open, 2: open.", unit: unitNumber, queries: [][2]string{{"max by (job, system) (" + upstream + "breaker_state" + selected + ")", "{{job}} {{system}}"}}},
			{title: "Duration of calls, 95th percentile", unit: "s", queries: [][2]string{{quantileOf("0.95", upstream+"call_duration_seconds", []string{"job", "system"}), "{{job}} {{system}}"}}},
		}},
		{"Replicas", []graph{
			{title: "Versions", help: "Replicas by version.", unit: unitNumber, queries: [][2]string{{"sum by (job, version) (" + namespace + "build_info" + selected + ")", "{{job}} {{version}}"}}},
			{title: "Requests", unit: "reqps", queries: [][2]string{{"sum by (job, status) (rate(" + namespace + "http_requests_total" + selected + "[$__rate_interval]))", "{{job}} {{status}}"}}},
		}},
	}
}

// budgetRows returns the rows for the error budgets: the share of bad events, which the rules in alerts.yaml record, and the
// resulting burn rate.
func budgetRows() []row {
	var rows []row

	for _, budget := range []struct{ title, name, limit string }{
		{"Orders, updates and deletions with an error", "accept_errors", "0.001"},
		{"Orders, updates and deletions that take longer than a second", "accept_slow", "0.01"},
		{"Operations that fail or take longer than an hour", "operations_late", "0.05"},
	} {
		share := func(window string) string {
			return "environment_broker:" + budget.name + ":ratio_rate" + window + selected
		}
		shares := graph{title: "Share of bad events", unit: "percentunit"}

		for _, window := range []string{"5m", "1h", "6h", "3d"} {
			shares.queries = append(shares.queries, [2]string{share(window), "{{job}} " + window})
		}

		rows = append(rows, row{budget.title, []graph{shares, {
			title: "Burn rate", help: "A burn rate of 1 uses up the error budget for 30 days in 30 days. Alerts: 14.4 over 1 hour, 6 over 6 hours, 3 over 1 day, 1 over 3 days.", unit: unitNumber,
			queries: [][2]string{
				{share("1h") + " / " + budget.limit, "{{job}} 1h"},
				{share("6h") + " / " + budget.limit, "{{job}} 6h"},
				{share("1d") + " / " + budget.limit, "{{job}} 1d"},
				{share("3d") + " / " + budget.limit, "{{job}} 3d"},
			},
		}}})
	}

	return rows
}

// processRow returns the row with the resource usage of the service processes.
func processRow() row {
	return row{"Processes", []graph{
		{title: "CPU", unit: unitNumber, queries: [][2]string{{"sum by (job, instance) (rate(process_cpu_seconds_total" + selected + "[$__rate_interval]))", "{{job}} {{instance}}"}}},
		{title: "Memory", unit: "bytes", queries: [][2]string{{"max by (job, instance) (process_resident_memory_bytes" + selected + ")", "{{job}} {{instance}}"}}},
		{title: "Goroutines", unit: unitNumber, queries: [][2]string{{"max by (job, instance) (go_goroutines" + selected + ")", "{{job}} {{instance}}"}}},
		{title: "Open files", unit: unitNumber, queries: [][2]string{{"max by (job, instance) (process_open_fds" + selected + ")", "{{job}} {{instance}}"}}},
	}}
}
