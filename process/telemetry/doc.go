// Package telemetry observes an engine: Metrics and Queue expose Prometheus metrics, and NewTracer returns a tracer that creates
// OpenTelemetry spans.
//
// No label contains the ID of an instance or operation, so the number of series is bounded by the number of kinds and steps.
//
// To add a metric, add a field to Metrics and a row to docs/operator/metrics.md, which a test compares with the code, and run make
// generate, which adds it to the dashboards. If operators must act on the metric, add an alert to resources/alerts.yaml and
// docs/operator/alerts.md.
package telemetry
