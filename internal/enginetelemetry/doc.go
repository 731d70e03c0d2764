// Package enginetelemetry exposes what an engine does: Metrics and Queue as Prometheus metrics, NewTracer as OpenTelemetry spans.
//
// No label names an instance or an operation, so the number of series is bounded by the number of kinds and steps. A new metric is added to
// Metrics, to docs/operator/metrics.md, which a test compares with the code, and, if operators must act on it, to resources/alerts.yaml.
package enginetelemetry
