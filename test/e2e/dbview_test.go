//go:build garden

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/test/harness"
)

// dbView reads the operations of a running service from its database.
type dbView struct {
	*testing.T

	service    string
	db         *storage.DB
	operations *operations.Store
}

func openDBView(t *testing.T, service string, settings replica.Database) dbView {
	t.Helper()

	db, keys := harness.OpenSealed(t, settings)

	stored, err := operations.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	return dbView{T: t, service: service, db: db, operations: stored}
}

func (v dbView) count(query string, arguments ...any) int {
	v.Helper()

	count, err := storage.Get[int](v.Context(), v.db.Reader(), query, arguments...)
	if err != nil {
		v.Fatal(err)
	}

	return count
}

func (v dbView) unfinished() int {
	v.Helper()

	return v.count(`SELECT count(*) FROM operations WHERE state IN ('pending', 'in progress', 'canceling')`)
}

// takeovers returns how many times a replica has taken over an operation from another replica.
func (v dbView) takeovers() int {
	v.Helper()

	return v.count(`SELECT count(*) FROM timeline WHERE outcome = ?`, string(process.TakenOver))
}

// outcomes returns the number of timeline entries by outcome, as text for the test's log.
func (v dbView) outcomes() string {
	v.Helper()

	lines, err := storage.Select[string](v.Context(), v.db.Reader(),
		`SELECT outcome || ' ' || count(*) FROM timeline GROUP BY outcome ORDER BY outcome`)
	if err != nil {
		v.Fatal(err)
	}

	return strings.Join(lines, ", ")
}

// retryReasons formats the five most frequent reasons for retries, each with the longest wait before the next attempt. It replaces
// IDs in the reasons with an ellipsis, so that reasons that differ only in IDs are counted together.
func (v dbView) retryReasons() string {
	v.Helper()

	lines, err := storage.Select[string](v.Context(), v.db.Reader(),
		`SELECT count(*) || ' × ' || reason || ' (up to ' || max(wait) || ' s)' FROM (
			SELECT regexp_replace(message, '[-[:xdigit:]]{7,}', '…', 'g') AS reason, extract(epoch FROM next_run_at - ended_at)::int AS wait
			FROM timeline WHERE outcome = 'retrying'
		) AS tries GROUP BY reason ORDER BY count(*) DESC LIMIT 5`)
	if err != nil {
		v.Fatal(err)
	}

	return strings.Join(lines, "; ")
}

// leaseOwners returns the number of replicas that hold leases.
func (v dbView) leaseOwners() int {
	v.Helper()

	return v.count(`SELECT count(DISTINCT lease_owner) FROM operations WHERE lease_until > now()`)
}

// expiredLeases returns the number of operations with an expired lease that no replica has taken over.
func (v dbView) expiredLeases() int {
	v.Helper()

	return v.count(`SELECT count(*) FROM operations WHERE lease_until <= now()`)
}

func (v dbView) records() map[string]process.Record {
	v.Helper()

	const many = 1_000_000

	records, err := v.operations.List(v.Context(), operations.Filter{Limit: many})
	if err != nil {
		v.Fatal(err)
	}

	found := make(map[string]process.Record, len(records))
	for _, record := range records {
		found[record.ID] = record
	}

	return found
}

// checkTimelines reports an error for each operation that failed or is unfinished, and for each timeline that violates an
// invariant of the engine.
func (v dbView) checkTimelines(records map[string]process.Record) {
	v.Helper()

	for _, record := range records {
		if record.State != process.Succeeded && record.State != process.Canceled {
			v.Errorf("%s: %s of %s is %s: %s", v.service, record.Kind, record.InstanceID, record.State, record.Problem.Message)
		}

		timeline, err := v.operations.Timeline(v.Context(), record.ID)
		if err != nil {
			v.Fatal(err)
		}

		for _, fault := range violations(record, timeline) {
			v.Errorf("%s: %s of %s (%s) %s:\n%s", v.service, record.Kind, record.InstanceID, record.ID, fault, formatTimeline(timeline))
		}
	}
}

// logUnfinished logs the timelines of the unfinished operations if the test has failed.
func (v dbView) logUnfinished() {
	v.Helper()

	if !v.Failed() {
		return
	}

	for _, record := range v.records() {
		if record.State.Terminal() {
			continue
		}

		timeline, err := v.operations.Timeline(v.Context(), record.ID)
		if err != nil {
			v.Fatal(err)
		}

		v.Logf("%s: %s of %s (%s) is %s:\n%s", v.service, record.Kind, record.InstanceID, record.ID, record.State, formatTimeline(timeline))
	}
}

// finalOutcomes maps the state of an ended operation to the outcome of the last entry in its timeline.
func finalOutcomes() map[process.State]process.Outcome {
	return map[process.State]process.Outcome{
		process.Succeeded: process.OperationSucceeded,
		process.Failed:    process.OperationFailed,
		process.Canceled:  process.OperationCanceled,
	}
}

// violations returns the invariants that the timeline of an ended operation violates. The first entry must be the acceptance,
// the last entry must have the final outcome, and no finished stage may run again.
func violations(record process.Record, timeline []process.Entry) []string {
	var found []string

	if len(timeline) == 0 || timeline[0].Outcome != process.Accepted {
		return []string{"does not start with its acceptance"}
	}

	if end := timeline[len(timeline)-1].Outcome; end != finalOutcomes()[record.State] {
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

// ranAgain reports whether a finished stage ran again. A stage ran again if its last step was done more than once.
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

// delay returns the longest delay between the time when an attempt was due and its start. The first attempt is due when the
// operation is accepted. Each later attempt is due when the previous attempt ends, or at the time for which the previous attempt
// scheduled it.
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

func formatTimeline(timeline []process.Entry) string {
	var text strings.Builder

	for _, entry := range timeline {
		fmt.Fprintf(&text, "  %s to %s %s/%s %s %s\n", entry.Began.Format("15:04:05.000"), entry.End.Format("15:04:05.000"),
			entry.Stage, entry.Step, entry.Outcome, entry.Message)
	}

	return text.String()
}
