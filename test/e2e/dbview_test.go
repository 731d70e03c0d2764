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

// dbView reads the database of a running service.
type dbView struct {
	*testing.T

	service    string
	db         *storage.DB
	operations *operations.Store
}

func openDBView(t *testing.T, service string, settings replica.Database) dbView {
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

	b := dbView{T: t, service: service, db: db}

	if b.operations, err = operations.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	return b
}

// count returns the result of a counting query.
func (b dbView) count(query string, arguments ...any) int {
	b.Helper()

	count, err := storage.Get[int](b.Context(), b.db.Reader(), query, arguments...)
	if err != nil {
		b.Fatal(err)
	}

	return count
}

// unfinished counts the operations that have not ended.
func (b dbView) unfinished() int {
	b.Helper()

	return b.count(`SELECT count(*) FROM operations WHERE state IN ('pending', 'in progress', 'canceling')`)
}

// takenOver counts the takeovers of operations.
func (b dbView) takenOver() int {
	b.Helper()

	return b.count(`SELECT count(*) FROM timeline WHERE outcome = ?`, string(process.TakenOver))
}

// outcomes counts each outcome in the timelines.
func (b dbView) outcomes() string {
	b.Helper()

	lines, err := storage.Select[string](b.Context(), b.db.Reader(),
		`SELECT outcome || ' ' || count(*) FROM timeline GROUP BY outcome ORDER BY outcome`)
	if err != nil {
		b.Fatal(err)
	}

	return strings.Join(lines, ", ")
}

// troubles returns the five most frequent reasons for retries, without IDs, with the longest wait before the next attempt.
func (b dbView) troubles() string {
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

// carriers counts the replicas that hold operations.
func (b dbView) carriers() int {
	b.Helper()

	return b.count(`SELECT count(DISTINCT lease_owner) FROM operations WHERE lease_until > now()`)
}

// lapsed counts the operations whose lease has expired and that no replica has taken over.
func (b dbView) lapsed() int {
	b.Helper()

	return b.count(`SELECT count(*) FROM operations WHERE lease_until <= now()`)
}

// all returns the operations by ID.
func (b dbView) all() map[string]process.Record {
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

// check reports operations that failed, and timelines that violate an invariant of the engine.
func (b dbView) check(records map[string]process.Record) {
	b.Helper()

	for _, record := range records {
		if record.State != process.Succeeded && record.State != process.Canceled {
			b.Errorf("%s: %s of %s is %s: %s", b.service, record.Kind, record.InstanceID, record.State, record.Problem.Message)
		}

		timeline, err := b.operations.Timeline(b.Context(), record.ID)
		if err != nil {
			b.Fatal(err)
		}

		for _, fault := range violations(record, timeline) {
			b.Errorf("%s: %s of %s (%s) %s:\n%s", b.service, record.Kind, record.InstanceID, record.ID, fault, readable(timeline))
		}
	}
}

// explain logs the unfinished operations if the test has failed.
func (b dbView) explain() {
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

// ends maps the state of an ended operation to the last outcome in its timeline.
func ends() map[process.State]process.Outcome {
	return map[process.State]process.Outcome{
		process.Succeeded: process.OperationSucceeded,
		process.Failed:    process.OperationFailed,
		process.Canceled:  process.OperationCanceled,
	}
}

// violations checks the timeline of an operation that has ended: it starts with its acceptance, ends with its end,
// and enters no finished stage again.
func violations(record process.Record, timeline []process.Entry) []string {
	var found []string

	if len(timeline) == 0 || timeline[0].Outcome != process.Accepted {
		return []string{"does not start with its acceptance"}
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
			found = append(found, "continues after its end")
		}
	}

	return found
}

// ranAgain reports whether the last step of a finished stage was done more than once.
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

// delay returns the longest time that an operation waited although an attempt was due: after its acceptance, after the end of an
// attempt, or after the scheduled time of the next attempt.
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

// readable formats a timeline.
func readable(timeline []process.Entry) string {
	var text strings.Builder

	for _, entry := range timeline {
		fmt.Fprintf(&text, "  %s to %s %s/%s %s %s\n", entry.Began.Format("15:04:05.000"), entry.End.Format("15:04:05.000"),
			entry.Stage, entry.Step, entry.Outcome, entry.Message)
	}

	return text.String()
}
