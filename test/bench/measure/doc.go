// Package measure turns what was measured into figures: percentiles of one run, medians of several, runs of two things in turn.
package measure
