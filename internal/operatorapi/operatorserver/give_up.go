package operatorserver

import (
	"time"

	"github.com/environment-broker/environment-broker/process"
)

// givesUpAt returns the time after which the next attempt of the current step gives up unless it succeeds: the end of its limit, of its
// stage's retry window if it fails, or else of the limit of the operation. A step can have shorter rules of its own. The result is zero
// for an operation that is not in progress and for a step that the process no longer has.
func (a *API) givesUpAt(record process.Record, timeline []process.Entry) time.Time {
	described := a.described(record.Kind)
	step := described.Step(record.Step)

	if record.State != process.InProgress || record.StartedAt.IsZero() || step.Step == "" {
		return time.Time{}
	}

	end := record.StartedAt.Add(described.Limit)

	begin, failing := series(record, timeline)
	if !step.OwnLimit {
		begin = failing
	}

	if limit := begin.Add(step.Limit); !begin.IsZero() && limit.Before(end) {
		end = limit
	}

	return end
}

// series returns the start of the current step's first attempt since it last succeeded, and the start of the first of the failed attempts
// with which the series ends. Either is zero if there is no such attempt.
func series(record process.Record, timeline []process.Entry) (first, failing time.Time) {
	for _, entry := range timeline {
		if entry.Step != record.Step || entry.Step == "" {
			continue
		}

		switch {
		case entry.Outcome == process.Done, entry.Outcome == process.NotCompleted:
			first, failing = time.Time{}, time.Time{}

			continue
		case entry.Outcome != process.Retrying:
			failing = time.Time{}
		case failing.IsZero():
			failing = entry.Began
		}

		if first.IsZero() {
			first = entry.Began
		}
	}

	if first.IsZero() {
		first = record.StepBegan
	}

	return first, failing
}
