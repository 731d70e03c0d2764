package crashtest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// outcome is the part of a run's result that must be the same in every run of a scenario.
type outcome struct {
	Operations []ended
	Upstream   any
}

// ended is an ended operation without IDs and times, which differ between runs.
type ended struct {
	Kind           string
	State          process.State
	Description    string
	Problem        process.Problem
	FinishedStages []string
	SkippedSteps   []string
	Data           string
}

// runOnce runs the scenario once with the given faults.
func runOnce[D any](t *testing.T, scenario Scenario[D], faults *faults) (result outcome) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) {
		run := newRun(t, scenario.Open(t), faults)
		defer run.end()

		ids := run.env.Script(run)
		all := run.all()

		for _, record := range all {
			run.Await(record.ID)
		}

		run.settle()

		for _, id := range ids {
			result.Operations = append(result.Operations, run.endedOperation(run.get(id)))
		}

		for _, record := range all {
			for _, violation := range run.violations(record.ID) {
				t.Error(violation)
			}

			if taken := run.monitor.of(record.ID).takeovers; taken > 0 && run.faults.injected == 0 {
				t.Errorf("%s was taken over %d times without a fault:\n%s",
					record.Kind, taken, text(run.timeline(record.ID)))
			}
		}

		result.Upstream = run.env.Upstream()

		run.monitor.end()

		for _, violation := range run.monitor.violations {
			t.Error(violation)
		}
	})

	return result
}

// assertEqual fails the test unless both outcomes are equal. want is the outcome of the run without faults.
func assertEqual(t *testing.T, want, got outcome) {
	t.Helper()

	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("the outcome differs from the run without faults: -want +got\n%s", diff)
	}
}

// all lists the operations, oldest first.
func (r *Run[D]) all() []process.Record {
	r.Helper()

	const enough = 1000

	records, err := r.env.Store.List(r.Context(), operations.Filter{Limit: enough})
	if err != nil {
		r.Fatal(err)
	}

	slices.SortFunc(records, func(one, other process.Record) int {
		return cmp.Or(one.CreatedAt.Compare(other.CreatedAt), cmp.Compare(one.Position, other.Position))
	})

	return records
}

// violations returns the invariants that an ended operation violates: gaps in the timeline, a lease that was not released,
// takeovers without an entry, and steps of finished stages that the timeline does not report as done.
func (r *Run[D]) violations(id string) []string {
	r.Helper()

	record, timeline := r.get(id), r.timeline(id)

	violations := Gaps(record.State, timeline)

	if record.Lease.Owner != "" {
		violations = append(violations, "the operation is still leased")
	}

	takeovers := 0
	done := map[string]bool{}

	for _, entry := range timeline {
		if entry.Outcome == process.TakenOver {
			takeovers++
		}

		done[entry.Step] = done[entry.Step] ||
			slices.Contains([]process.Outcome{process.Done, process.NotCompleted, process.Skipped}, entry.Outcome)
	}

	r.monitor.mutex.Lock()
	observation := r.monitor.of(id)

	if takeovers > observation.takeovers || takeovers == 0 && observation.takeovers > 0 {
		violations = append(violations, "the timeline does not match the takeovers")
	}

	for _, stage := range record.FinishedStages {
		for _, step := range observation.ran[stage] {
			if !done[step] {
				violations = append(violations, "the timeline lacks the end of step "+step)
			}
		}
	}

	r.monitor.mutex.Unlock()

	for i := range violations {
		violations[i] = fmt.Sprintf("%s %s: %s; timeline:\n%s", record.Kind, record.State, violations[i], text(timeline))
	}

	return violations
}

var (
	ids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// endedOperation returns the part of an ended operation that must be the same in every run. It replaces random strings in the
// data.
func (r *Run[D]) endedOperation(record process.Record) ended {
	data := ""
	if !r.env.AnyData {
		data = string(record.Payload)
	}

	for _, random := range []*regexp.Regexp{ids, times, r.env.Random} {
		if random != nil {
			data = random.ReplaceAllString(data, "…")
		}
	}

	return ended{
		Kind: record.Kind, State: record.State, Description: record.Description, Problem: record.Problem,
		FinishedStages: record.FinishedStages, SkippedSteps: r.skipped(record), Data: data,
	}
}

// skipped returns the skipped steps that are not in Env.MaySkip.
func (r *Run[D]) skipped(record process.Record) []string {
	var steps []string

	for _, step := range record.SkippedSteps {
		if !slices.Contains(r.env.MaySkip, step) {
			steps = append(steps, step)
		}
	}

	return steps
}

func at(moment time.Time) string { return moment.Format("15:04:05.000") }
