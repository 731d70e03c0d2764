// Package measure computes figures from measurements: percentiles of a run, medians of several runs, ratios of alternating runs.
package measure
