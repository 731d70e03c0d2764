package estimate

import (
	"math"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/process"
)

// The quantiles of past durations that a Forecast contains.
const (
	median    = 0.5
	almostAll = 0.95
)

// past is an operation that has succeeded.
type past struct {
	id    string
	began time.Time
	took  time.Duration
	// steps are the steps in the operation's timeline, keyed by name. It is empty if the timeline was removed.
	steps map[string]span
}

// span says when a step started, counted from the start of the operation, and how long it took, including its waits.
type span struct{ from, took time.Duration }

// forecast compares an operation with past ones at the same point: in the same step, after the same time in it. If no past
// operation had the step, it compares the time since the start of the operation.
func forecast(all []*past, record process.Record, now time.Time) process.Forecast {
	inStep := time.Duration(0)
	if !record.StepSince.IsZero() {
		inStep = now.Sub(record.StepSince)
	}

	done, left := places(all, func(one *past) (span, bool) {
		step, found := one.steps[record.Step]

		return step, found
	}, inStep)

	if len(done) == 0 {
		done, left = places(all, func(one *past) (span, bool) { return span{took: one.took}, true }, now.Sub(record.StartedAt))
	}

	if len(done) == 0 {
		return process.Forecast{}
	}

	result := process.Forecast{Percent: percent(quantile(done, median))}
	if len(left) > 0 {
		result.Likely, result.Latest = now.Add(quantile(left, median)), now.Add(quantile(left, almostAll))
	}

	return result
}

// places compares past operations at the given time in the step. For each, it returns the fraction of the work that was done by
// then, and the remaining time if the operation was still in the step. It ignores past operations without the step.
func places(all []*past, step func(*past) (span, bool), inStep time.Duration) (done []float64, left []time.Duration) {
	for _, one := range all {
		span, found := step(one)
		if !found || one.took <= 0 {
			continue
		}

		done = append(done, float64(span.from+min(inStep, span.took))/float64(one.took))

		if inStep <= span.took {
			left = append(left, one.took-span.from-inStep)
		}
	}

	return done, left
}

// percent converts a fraction to a percentage from 1 to 99, because the operation has started and has not ended.
func percent(part float64) int { return min(max(int(part*100), 1), 99) } //nolint:mnd // percent

// quantile returns the smallest value that is not less than the given fraction of the values, or 0 if there are no values.
func quantile[T float64 | time.Duration](values []T, part float64) T {
	if len(values) == 0 {
		return 0
	}

	slices.Sort(values)

	return values[max(int(math.Ceil(part*float64(len(values))))-1, 0)]
}
