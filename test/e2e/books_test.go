//go:build garden

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/replica"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// books are the rows of a service, read beside it.
type books struct {
	*testing.T

	service    string
	db         *storage.DB
	operations *operations.Store
}

func openBooks(t *testing.T, service string, settings replica.Database) books {
	t.Helper()

	keys, err := settings.Keys()
	if err != nil {
		t.Fatal(err)
	}

	where, err := settings.Storage()
	if err != nil {
		t.Fatal(err)
	}

	db, err := storage.Open(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})

	b := books{T: t, service: service, db: db}

	if b.operations, err = operations.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	return b
}

// count is what a query counts.
func (b books) count(query string, arguments ...any) int {
	b.Helper()

	count, err := storage.Get[int](b.Context(), b.db.Reader(), query, arguments...)
	if err != nil {
		b.Fatal(err)
	}

	return count
}

// unfinished is how many operations are not at an end.
func (b books) unfinished() int {
	b.Helper()

	return b.count(`SELECT count(*) FROM operations WHERE state IN ('pending', 'in progress', 'canceling')`)
}

// takenOver is how often an operation was taken over so far.
func (b books) takenOver() int {
	b.Helper()

	return b.count(`SELECT count(*) FROM timeline WHERE outcome = ?`, string(process.TakenOver))
}

// outcomes tells how often each outcome is in the timelines.
func (b books) outcomes() string {
	b.Helper()

	lines, err := storage.Select[string](b.Context(), b.db.Reader(),
		`SELECT outcome || ' ' || count(*) FROM timeline GROUP BY outcome ORDER BY outcome`)
	if err != nil {
		b.Fatal(err)
	}

	return strings.Join(lines, ", ")
}

// troubles are the five most frequent reasons for which steps were tried again, without what differs from one operation to the next, and how
// long operations waited for the next try at most.
func (b books) troubles() string {
	b.Helper()

	lines, err := storage.Select[string](b.Context(), b.db.Reader(),
		`SELECT count(*) || ' × ' || reason || ' (up to ' || max(wait) || ' s)' FROM (
			SELECT regexp_replace(message, '[-[:xdigit:]]{7,}', '…', 'g') AS reason, extract(epoch FROM next_run_at - ended_at)::int AS wait
			FROM timeline WHERE outcome = 'retrying'
		) AS tries GROUP BY reason ORDER BY count(*) DESC LIMIT 5`)
	if err != nil {
		b.Fatal(err)
	}

	return strings.Join(lines, "; ")
}

// carriers is how many replicas hold operations.
func (b books) carriers() int {
	b.Helper()

	return b.count(`SELECT count(DISTINCT lease_owner) FROM operations WHERE lease_until > now()`)
}

// lapsed is how many operations are still to be taken over from replicas that do not renew their leases.
func (b books) lapsed() int {
	b.Helper()

	return b.count(`SELECT count(*) FROM operations WHERE lease_until <= now()`)
}

// all are the operations by their ids.
func (b books) all() map[string]process.Record {
	b.Helper()

	const many = 1_000_000

	records, err := b.operations.List(b.Context(), operations.Filter{Limit: many})
	if err != nil {
		b.Fatal(err)
	}

	found := make(map[string]process.Record, len(records))
	for _, record := range records {
		found[record.ID] = record
	}

	return found
}

// check finds operations that did not end as they should, and timelines that tell of something that must not happen.
func (b books) check(records map[string]process.Record) {
	b.Helper()

	for _, record := range records {
		if record.State != process.Succeeded && record.State != process.Canceled {
			b.Errorf("%s: %s of %s is %s: %s", b.service, record.Kind, record.InstanceID, record.State, record.Problem.Message)
		}

		timeline, err := b.operations.Timeline(b.Context(), record.ID)
		if err != nil {
			b.Fatal(err)
		}

		for _, fault := range faults(record, timeline) {
			b.Errorf("%s: %s of %s (%s) %s:\n%s", b.service, record.Kind, record.InstanceID, record.ID, fault, readable(timeline))
		}
	}
}

// explain tells of what is not at its end when the test has failed.
func (b books) explain() {
	b.Helper()

	if !b.Failed() {
		return
	}

	for _, record := range b.all() {
		if record.State.Terminal() {
			continue
		}

		timeline, err := b.operations.Timeline(b.Context(), record.ID)
		if err != nil {
			b.Fatal(err)
		}

		b.Logf("%s: %s of %s (%s) is %s:\n%s", b.service, record.Kind, record.InstanceID, record.ID, record.State, readable(timeline))
	}
}

// ends are the outcomes with which a timeline ends, by the state of the operation.
func ends() map[process.State]process.Outcome {
	return map[process.State]process.Outcome{
		process.Succeeded: process.OperationSucceeded,
		process.Failed:    process.OperationFailed,
		process.Canceled:  process.OperationCanceled,
	}
}

// faults tells what is wrong with the timeline of an operation that is at its end: it begins with the acceptance and ends with the end,
// and no stage is entered again after it was finished.
func faults(record process.Record, timeline []process.Entry) []string {
	var found []string

	if len(timeline) == 0 || timeline[0].Outcome != process.Accepted {
		return []string{"does not begin with its acceptance"}
	}

	if end := timeline[len(timeline)-1].Outcome; end != ends()[record.State] {
		found = append(found, "is "+string(record.State)+" and ends with "+string(end))
	}

	for _, stage := range record.FinishedStages {
		if ranAgain(stage, timeline) {
			found = append(found, "runs "+stage+" again")
		}
	}

	var left []string

	current := ""

	for _, entry := range timeline[1:] {
		switch {
		case entry.Outcome == process.Accepted:
			found = append(found, "is accepted twice")
		case entry.Stage == "" || entry.Stage == current:
		case slices.Contains(left, entry.Stage):
			found = append(found, "enters "+entry.Stage+" again")
		default:
			left, current = append(left, current), entry.Stage
		}
	}

	for _, entry := range timeline[:len(timeline)-1] {
		if slices.Contains([]process.Outcome{process.OperationSucceeded, process.OperationFailed, process.OperationCanceled}, entry.Outcome) {
			found = append(found, "goes on after its end")
		}
	}

	return found
}

// ranAgain reports whether the last step of a finished stage was done more than once: with it the stage was finished.
func ranAgain(stage string, timeline []process.Entry) bool {
	last, done := "", 0

	for _, entry := range timeline {
		if entry.Stage == stage {
			last = entry.Step
		}
	}

	for _, entry := range timeline {
		if entry.Stage == stage && entry.Step == last && entry.Outcome == process.Done {
			done++
		}
	}

	return done > 1
}

// delay is how long an operation waited beyond the moment at which something was to be done: after its acceptance, after the end of an
// attempt, or after the time at which that was to be tried again.
func delay(timeline []process.Entry) time.Duration {
	var longest time.Duration

	due := time.Time{}

	for _, entry := range timeline {
		if !due.IsZero() {
			longest = max(longest, entry.Began.Sub(due))
		}

		due = entry.End
		if !entry.NextRun.IsZero() {
			due = entry.NextRun
		}
	}

	return longest
}

// readable is a timeline for people.
func readable(timeline []process.Entry) string {
	var text strings.Builder

	for _, entry := range timeline {
		fmt.Fprintf(&text, "  %s to %s %s/%s %s %s\n", entry.Began.Format("15:04:05.000"), entry.End.Format("15:04:05.000"),
			entry.Stage, entry.Step, entry.Outcome, entry.Message)
	}

	return text.String()
}
