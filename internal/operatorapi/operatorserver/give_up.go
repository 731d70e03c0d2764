package operatorserver

import (
	"time"

	"github.com/environment-broker/environment-broker/process"
)

// givesUpAt returns the time after which the next attempt of the current step gives up unless it succeeds: the end of its limit, of its
// stage's retry window if it fails, or else of the limit of the operation. A step can have shorter rules of its own. The result is zero
// for an operation that is not in progress and for a step that the process no longer has.
func (a *API) givesUpAt(record process.Record, attempts series) time.Time {
	described := a.described(record.Kind)
	step := described.Step(record.Step)

	if record.State != process.InProgress || record.StartedAt.IsZero() || step.Step == "" {
		return time.Time{}
	}

	end := record.StartedAt.Add(described.Limit)

	begin := attempts.first
	if !step.OwnLimit {
		begin = attempts.failing
	}

	if limit := begin.Add(step.Limit); !begin.IsZero() && limit.Before(end) {
		end = limit
	}

	return end
}

// series are the attempts of the current step since it last succeeded.
type series struct {
	// count includes a running attempt. Compaction merges entries of a series of retries but retains the last one with its attempt
	// number, so the count remains correct.
	count int
	// first is the start of the first attempt, and failing the start of the first of the failed attempts with which the series ends.
	// Either is zero if there is no such attempt.
	first, failing time.Time
}

// seriesOf returns the attempts of the operation's current step since it last succeeded.
func seriesOf(record process.Record, timeline []process.Entry) series {
	var found series

	for _, entry := range timeline {
		if entry.Step != record.Step || entry.Step == "" {
			continue
		}

		if entry.Outcome == process.Done || entry.Outcome == process.NotCompleted {
			found = series{}

			continue
		}

		found.count = entry.Attempt

		if found.first.IsZero() {
			found.first = entry.Began
		}

		switch {
		case entry.Outcome != process.Retrying:
			found.failing = time.Time{}
		case found.failing.IsZero():
			found.failing = entry.Began
		}
	}

	if record.StepBegan.IsZero() {
		return found
	}

	if found.count++; found.first.IsZero() {
		found.first = record.StepBegan
	}

	return found
}
