package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/jobs"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/reports"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

var began = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// work simulates the work of a job. It is not safe for concurrent use.
type work struct {
	due       []string
	broken    error            // the error of Due
	failing   map[string]error // the errors of items
	lost      []string         // items that a concurrent request has changed
	done      []string         // item and reason of each call
	completed int
	end       error // the error of Complete
	each      func()
}

func (w *work) job(limit int) jobs.Job {
	return jobs.Job{
		Name: "test", Description: "Test.", Items: "things", Every: time.Hour, Limit: limit, Reason: "due", Protection: "It has no effect.",
		Due: func(context.Context) (jobs.Due, error) {
			due := jobs.Due{Complete: func(context.Context) error {
				w.completed++

				return w.end
			}}

			for _, id := range w.due {
				due.Items = append(due.Items, jobs.Item{ID: id, InstanceID: strings.TrimPrefix(id, "none"), Do: func(_ context.Context, reason string) (bool, error) {
					w.done = append(w.done, id+": "+reason)
					if w.each != nil {
						w.each()
					}

					return !slices.Contains(w.lost, id), w.failing[id]
				}})
			}

			return due, w.broken
		},
	}
}

func newRunner(t *testing.T, db *storage.DB, limit int) (*work, jobs.Runner, *clocktesting.FakeClock) {
	t.Helper()

	store, err := reports.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}

	work, clock := &work{}, clocktesting.NewFakeClock(began)

	return work, jobs.Runner{Jobs: []jobs.Job{work.job(limit)}, Reports: store, Clock: clock, Log: logging.Discard(), Protected: work.isProtected}, clock
}

// isProtected returns true for IDs that start with p, and an error for the instance "broken".
func (w *work) isProtected(_ context.Context, instanceID string) (bool, error) {
	if instanceID == "broken" {
		return false, failure.New(failure.Transient, "the database is unreachable")
	}

	return strings.HasPrefix(instanceID, "p"), nil
}

// TestDryRunNamesProtectedInstances checks that the result of a dry run counts and names the due items of protected instances.
func TestDryRunNamesProtectedInstances(t *testing.T) {
	work, runner, _ := newRunner(t, storagetest.SQLite(t), 1)

	for range 150 {
		work.due = append(work.due, "p")
	}

	work.due = append(work.due, "a", "none", "p-last")

	result, err := runner.Run(t.Context(), jobs.Order{Name: "test", DryRun: true})
	if err != nil || result.Protected != 151 || len(result.ProtectedIDs) != 100 || result.Protection != "It has no effect." || len(result.Errors) > 0 {
		t.Errorf("got %+v, %v, want 151 protected items, the first 100 of them, and what a run does", result, err)
	}

	work.due = []string{"p", "broken", "p"}

	if result, err = runner.Run(t.Context(), jobs.Order{Name: "test", DryRun: true}); err != nil || !slices.Equal(result.Errors, []string{"the database is unreachable"}) {
		t.Errorf("got %+v, %v, want the error of the database", result, err)
	}

	if result, err = runner.Run(t.Context(), jobs.Order{Name: "test", Confirm: 9}); err != nil || result.Protection != "" || len(work.done) != 3 {
		t.Errorf("got %+v, %v, want a run without a look at the protection", result, err)
	}
}

// last returns the stored result of the newest run.
func last(t *testing.T, runner jobs.Runner) *jobs.Result {
	t.Helper()

	list, err := runner.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}

	return list[0].Last
}

// TestResults checks the changes and the stored result of background runs.
func TestResults(t *testing.T) {
	gone := failure.New(failure.Transient, "the system is unreachable")

	cases := map[string]struct {
		reason    string
		work      work
		limit     int
		done      int
		completed int
		want      jobs.Result
	}{
		"Nothing":  {reason: "a run without work completes", completed: 1},
		"Done":     {reason: "each item is done", work: work{due: []string{"a", "b"}}, done: 2, completed: 1, want: jobs.Result{Due: 2, Changed: 2}},
		"AtLimit":  {reason: "the limit is allowed", work: work{due: []string{"a", "b"}}, limit: 2, done: 2, completed: 1, want: jobs.Result{Due: 2, Changed: 2}},
		"Held":     {reason: "nothing changes above the limit", work: work{due: []string{"a", "b", "c"}}, limit: 2, want: jobs.Result{Due: 3, Held: true}},
		"Race":     {reason: "another replica was faster", work: work{due: []string{"a", "b"}, lost: []string{"a"}}, done: 2, completed: 1, want: jobs.Result{Due: 2, Changed: 1, Unchanged: 1}},
		"Failed":   {reason: "the other items are done", work: work{due: []string{"a", "b"}, failing: map[string]error{"a": gone}}, done: 2, want: jobs.Result{Due: 2, Changed: 1, Failed: 1, Errors: []string{"a: the system is unreachable"}}},
		"DueFails": {reason: "what is known is done, but the run is not complete", work: work{due: []string{"a"}, broken: gone}, done: 1, want: jobs.Result{Due: 1, Changed: 1, Errors: []string{"the system is unreachable"}}},
		"Partly":   {reason: "the number of due items is unknown, so the limit cannot be checked", work: work{due: []string{"a"}, broken: gone}, limit: 2, want: jobs.Result{Due: 1, Errors: []string{"the system is unreachable"}}},
		"EndFails": {reason: "the error of the end is shown", work: work{due: []string{"a"}, end: gone}, done: 1, completed: 1, want: jobs.Result{Due: 1, Changed: 1, Errors: []string{"the system is unreachable"}}},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
				t.Helper()

				work, runner, clock := newRunner(t, db, c.limit)
				*work = c.work

				for range 2 { // the first turn of a new database is due after an interval
					if err := runner.TakeTurn(t.Context(), runner.Jobs[0]); err != nil {
						t.Fatal(err)
					}

					clock.Step(time.Hour)
				}

				want := c.want
				want.StartedAt, want.FinishedAt = began.Add(time.Hour), began.Add(time.Hour)

				if diff := cmp.Diff(&want, last(t, runner)); diff != "" {
					t.Errorf("%s: the result -want +got\n%s", c.reason, diff)
				}

				if len(work.done) != c.done || work.completed != c.completed {
					t.Errorf("%s: did %v, completed %d times", c.reason, work.done, work.completed)
				}
			})
		})
	}
}

// TestOneReplicaRuns takes turns as several replicas do.
func TestOneReplicaRuns(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()

		work, runner, clock := newRunner(t, db, 0)
		work.due = []string{"a"}

		for _, step := range []struct {
			after time.Duration
			want  int
		}{{0, 0}, {59 * time.Minute, 0}, {time.Hour, 1}, {time.Hour, 1}, {90 * time.Minute, 1}, {2*time.Hour + time.Millisecond, 2}, {3 * time.Hour, 3}} {
			clock.SetTime(began.Add(step.after))

			if err := runner.TakeTurn(t.Context(), runner.Jobs[0]); err != nil || len(work.done) != step.want {
				t.Errorf("after %s the job has run %d times, want %d: %v", step.after, len(work.done), step.want, err)
			}
		}
	})
}

// TestOrders checks requests of operators.
func TestOrders(t *testing.T) {
	order := func(confirm int, dryRun bool) jobs.Order {
		return jobs.Order{Name: "test", DryRun: dryRun, Confirm: confirm, Reason: "by jane: because", By: "jane"}
	}

	cases := map[string]struct {
		reason string
		order  jobs.Order
		kind   failure.Kind
		want   []string
		result jobs.Result
		stored bool
	}{
		"Unknown":   {reason: "there is no such job", order: jobs.Order{Name: "x"}, kind: failure.NotFound},
		"DryRun":    {reason: "a dry run shows the due items", order: order(0, true), result: jobs.Result{By: "jane", Due: 3, Held: true, IDs: []string{"a", "b", "c"}, Protection: "It has no effect."}},
		"Held":      {reason: "the limit holds for operators", order: order(0, false), kind: failure.Conflict, result: jobs.Result{By: "jane", Due: 3, Held: true, IDs: []string{"a", "b", "c"}}},
		"Outdated":  {reason: "more is due than the operator has seen", order: order(2, false), kind: failure.Conflict, result: jobs.Result{By: "jane", Due: 3, Held: true, IDs: []string{"a", "b", "c"}}},
		"Confirmed": {reason: "the operator has confirmed the number", order: order(3, false), want: []string{"a: by jane: because", "b: by jane: because", "c: by jane: because"}, result: jobs.Result{By: "jane", Due: 3, Changed: 3, IDs: []string{"a", "b", "c"}}, stored: true},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			work, runner, _ := newRunner(t, storagetest.SQLite(t), 1)
			work.due = []string{"a", "b", "c"}

			result, err := runner.Run(t.Context(), c.order)
			if c.kind == "" && err != nil || c.kind != "" && !failure.Is(err, c.kind) {
				t.Errorf("%s: got %v", c.reason, err)
			}

			times := cmpopts.IgnoreFields(jobs.Result{}, "StartedAt", "FinishedAt")
			if diff := cmp.Diff(c.result, result, times); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}

			if diff := cmp.Diff(c.want, work.done); diff != "" {
				t.Errorf("%s: done -want +got\n%s", c.reason, diff)
			}

			if stored := last(t, runner); (stored != nil) != c.stored || stored != nil && (stored.By != "jane" || stored.IDs != nil) {
				t.Errorf("%s: stored %+v", c.reason, stored)
			}
		})
	}
}

// TestInterrupted ends the context during a run. The other items stay for the next run, and the run is not complete.
func TestInterrupted(t *testing.T) {
	work, runner, _ := newRunner(t, storagetest.SQLite(t), 0)
	work.due = []string{"a", "b", "c"}

	ctx, cancel := context.WithCancel(t.Context())
	work.each = cancel

	result, err := runner.Run(ctx, jobs.Order{Name: "test", Reason: "why"})
	if err != nil || result.Changed != 1 || result.Left() != 2 || work.completed != 0 {
		t.Errorf("got %+v, %v, completed %d times", result, err, work.completed)
	}

	if stored := last(t, runner); stored == nil || stored.Left() != 2 {
		t.Errorf("stored %+v", stored)
	}
}

// TestShutdown ends the context during a run in the background, which still stores its result.
func TestShutdown(t *testing.T) {
	work, runner, clock := newRunner(t, storagetest.SQLite(t), 0)
	work.due = []string{"a", "b", "c"}

	ctx, cancel := context.WithCancel(t.Context())
	work.each = cancel

	if err := runner.TakeTurn(ctx, runner.Jobs[0]); err != nil || len(work.done) != 0 {
		t.Fatalf("the first turn is in an hour: %v, %v", work.done, err)
	}

	clock.SetTime(began.Add(time.Hour))

	if err := runner.TakeTurn(ctx, runner.Jobs[0]); err != nil {
		t.Error(err)
	}

	if stored := last(t, runner); stored == nil || stored.Changed != 1 || stored.Left() != 2 {
		t.Errorf("stored %+v", stored)
	}
}

// TestErrorsAreBounded checks that a result lists equal errors once, with the number of their items, and only the first different ones.
func TestErrorsAreBounded(t *testing.T) {
	work, runner, _ := newRunner(t, storagetest.SQLite(t), 0)
	work.failing = map[string]error{}

	for i := range 200 {
		id := fmt.Sprintf("i%03d", i)
		work.due, work.failing[id] = append(work.due, id), failure.New(failure.Transient, "error %d", i/2)
	}

	result, err := runner.Run(t.Context(), jobs.Order{Name: "test", Reason: "why"})
	if err != nil || result.Failed != 200 || len(result.IDs) != 100 {
		t.Errorf("got %+v, %v", result, err)
	}

	want := []string{"i000 and 1 more: error 0", "i002 and 1 more: error 1", "i004 and 1 more: error 2", "i006 and 1 more: error 3", "i008 and 1 more: error 4"}
	if !slices.Equal(want, result.Errors) {
		t.Errorf("the errors are %q", result.Errors)
	}
}

// TestSecretErrors checks that a result does not repeat errors that are not meant for users.
func TestSecretErrors(t *testing.T) {
	work, runner, _ := newRunner(t, storagetest.SQLite(t), 0)
	work.due, work.failing = []string{"a"}, map[string]error{"a": errors.New("password=hunter2")}

	result, err := runner.Run(t.Context(), jobs.Order{Name: "test", Reason: "why"})
	if err != nil || len(result.Errors) != 1 || strings.Contains(result.Errors[0], "hunter2") {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestMetrics(t *testing.T) {
	work, runner, _ := newRunner(t, storagetest.SQLite(t), 2)
	registry := prometheus.NewRegistry()
	runner.Metrics = jobs.NewMetrics(registry, runner)

	work.due, work.lost = []string{"a", "b"}, []string{"b"}
	if _, err := runner.Run(t.Context(), jobs.Order{Name: "test", Reason: "why"}); err != nil {
		t.Fatal(err)
	}

	want := fmt.Sprintf(`# HELP environment_broker_job_due Items that were due in the newest run of a job.
# TYPE environment_broker_job_due gauge
environment_broker_job_due{name="test"} 2
# HELP environment_broker_job_failing 1 if the newest run of a job had an error, otherwise 0.
# TYPE environment_broker_job_failing gauge
environment_broker_job_failing{name="test"} 0
# HELP environment_broker_job_held 1 if the newest run of a job has changed nothing because the number of due items exceeded the job's limit, otherwise 0.
# TYPE environment_broker_job_held gauge
environment_broker_job_held{name="test"} 0
# HELP environment_broker_job_items_total Items processed by this replica's job runs, by job and result: changed, unchanged, failed.
# TYPE environment_broker_job_items_total counter
environment_broker_job_items_total{name="test",result="changed"} 1
environment_broker_job_items_total{name="test",result="failed"} 0
environment_broker_job_items_total{name="test",result="unchanged"} 1
# HELP environment_broker_job_last_run_timestamp_seconds When the newest run of a job ended, in Unix time.
# TYPE environment_broker_job_last_run_timestamp_seconds gauge
environment_broker_job_last_run_timestamp_seconds{name="test"} %d
`, began.Unix())
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// TestDailyJob looks every ten minutes on two replicas for six days: the job runs once a day at its time, even on the first day.
// On one day no replica runs at that time, and the job waits for the next day.
func TestDailyJob(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		_, runner, clock := newRunner(t, db, 0)

		at, err := jobs.ParseDaily("02:30")
		if err != nil {
			t.Fatal(err)
		}

		var ran []string

		job := runner.Jobs[0]
		job.Daily = &at
		job.Due = func(context.Context) (jobs.Due, error) {
			ran = append(ran, clock.Now().Format("02 15:04"))

			return jobs.Due{}, nil
		}

		for clock.Now().Before(began.AddDate(0, 0, 6)) {
			away := clock.Now().Day() == 5 && clock.Now().Hour() < 6
			for range 2 {
				if away {
					break
				}

				if err := runner.TakeTurn(t.Context(), job); err != nil {
					t.Fatal(err)
				}
			}

			clock.Step(10 * time.Minute)
		}

		if diff := cmp.Diff([]string{"03 02:34", "04 02:34", "06 02:34", "07 02:34", "08 02:34"}, ran); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

func TestParseDaily(t *testing.T) {
	for _, text := range []string{"", "2", "24:00", "02:60", "2:30 pm", "-1:00"} {
		if at, err := jobs.ParseDaily(text); err == nil {
			t.Errorf("%q is %s", text, at)
		}
	}

	for _, text := range []string{"00:00", "23:59"} {
		at, err := jobs.ParseDaily(text)
		if got := (jobs.Job{Daily: &at}).DailyText(); err != nil || got != text {
			t.Errorf("%s is shown as %s: %v", text, got, err)
		}
	}
}
