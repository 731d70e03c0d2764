package operator_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/estimate"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestWaitingOperation(t *testing.T) {
	b := newBench(t)
	now := b.clock.Now()
	next := now.Add(time.Hour)

	id := b.operation("one", environment.KindProvision, process.InProgress, func(progress *process.Progress) {
		progress.Release = true
		progress.Record.FinishedStages = []string{"start"}
		progress.Record.Stage, progress.Record.Step, progress.Record.WaitingFor = "create_runtime", "Order", "runtime/1"
		progress.Record.Problem = process.Problem{Message: "it does not respond", Reason: "err_keb_timeout", Component: "provisioner"}
		progress.Timeline = []process.Entry{
			{Stage: "start", Step: "Starting", Attempt: 1, Began: now, End: now, Outcome: process.Done},
			{Stage: "create_runtime", Step: "Order", Attempt: 3, Began: now, End: now, Outcome: process.Retrying, Message: "it does not respond", NextRun: next},
		}
	})

	got := b.want("an operation", b.do("viewer", "GET", "/operations/"+id), http.StatusOK)
	want := operatorapi.Operation{
		ID: id, InstanceID: "one", Kind: "provision", State: "in progress", Description: "provision of one",
		Problem: operatorapi.Problem{Message: "it does not respond", Reason: "err_keb_timeout", Component: "provisioner"},
		Stages:  []string{"start", "create_runtime"}, FinishedStages: []string{"start"},
		Stage: "create_runtime", Step: "Order", StepDoes: "Orders the runtime.", Attempt: 3, Why: "it does not respond",
		WaitingFor: "runtime/1", NextRun: next, GivesUpAt: now.Add(30 * time.Minute),
		CreatedAt: now, UpdatedAt: now, StartedAt: now,
		Timeline: []operatorapi.TimelineEntry{
			{Began: now, End: now, Outcome: "accepted", Message: "provision"},
			{Stage: "start", Step: "Starting", Attempt: 1, Began: now, End: now, Outcome: "done"},
			{Stage: "create_runtime", Step: "Order", Attempt: 3, Began: now, End: now, Outcome: "retrying", Message: "it does not respond", NextRun: next},
		},
	}

	if diff := cmp.Diff(want, read[operatorapi.Operation](b, got)); diff != "" {
		b.Errorf("operation: -want +got\n%s", diff)
	}

	if got.Header.Get("Retry-After") != "1" {
		b.Errorf("Retry-After is %q, want 1", got.Header.Get("Retry-After"))
	}
}

// TestUserTextOfAnOperation checks that an operation has the text of last_operation, and a list does not.
func TestUserTextOfAnOperation(t *testing.T) {
	for state, want := range map[process.State]string{
		process.Pending:    "Waiting to start.",
		process.InProgress: "Creating the cluster: delayed, retrying: no quota",
		process.Failed:     "Creating the cluster failed: no quota",
	} {
		t.Run(string(state), func(t *testing.T) {
			b := newBench(t, func(options *operator.Options) { options.UserText = broker.OperationText })
			id := b.operation("one", environment.KindProvision, state, func(progress *process.Progress) {
				progress.Record.Problem = process.Problem{Message: "no quota"}
			})

			one := read[operatorapi.Operation](b, b.want("an operation", b.do("viewer", "GET", "/operations/"+id), http.StatusOK))
			if one.UserText != want {
				b.Errorf("the text is %q, want %q", one.UserText, want)
			}

			all := read[operatorapi.OperationList](b, b.want("the list", b.do("viewer", "GET", "/operations"), http.StatusOK))
			if len(all.Data) != 1 || all.Data[0].UserText != "" {
				b.Errorf("the list is %+v, want one operation without text", all.Data)
			}
		})
	}
}

// pastOperations are past operations whose timelines were removed.
type pastOperations []instances.Duration

func (p pastOperations) Durations(context.Context) ([]instances.Duration, error) { return p, nil }

func (pastOperations) StepTimes(context.Context, []string) ([]operations.StepTime, error) {
	return nil, nil
}

// TestForecastOfAnOperation checks that an operation is compared with past ones of its plan, even in lists.
func TestForecastOfAnOperation(t *testing.T) {
	past := pastOperations{
		{OperationID: "1", Kind: environment.KindProvision, PlanID: "other", Took: time.Hour},
		{OperationID: "2", Kind: environment.KindProvision, PlanID: "other", Took: time.Hour},
		{OperationID: "3", Kind: environment.KindProvision, PlanID: "plan-id", Took: 10 * time.Minute},
	}

	b := newBench(t, func(options *operator.Options) {
		options.UserText, options.Estimator = broker.OperationText, estimate.New(past, past)

		if err := options.Estimator.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	id := b.instance("one", process.InProgress)
	started := b.clock.Now()
	b.clock.SetTime(started.Add(4 * time.Minute))

	shown := read[operatorapi.Operation](b, b.want("an operation", b.do("viewer", "GET", "/operations/"+id), http.StatusOK))
	if shown.Percent != 40 || !shown.EstimatedEnd.Equal(started.Add(10*time.Minute)) || !shown.LatestEnd.Equal(shown.EstimatedEnd) {
		b.Errorf("got %d %%, %s, %s, want 40 %% of ten minutes", shown.Percent, shown.EstimatedEnd, shown.LatestEnd)
	}

	if want := "Creating the cluster: 40 %, about 6 minutes left"; shown.UserText != want {
		b.Errorf("the text is %q, want %q", shown.UserText, want)
	}

	all := read[operatorapi.OperationList](b, b.want("the list", b.do("viewer", "GET", "/operations"), http.StatusOK))
	if len(all.Data) != 1 || all.Data[0].Percent != 40 || !all.Data[0].EstimatedEnd.IsZero() {
		b.Errorf("the list is %+v, want one operation with the same percentage, and without an expected end", all.Data)
	}

	if runtimes := list[operatorapi.RuntimeList](b, "/runtimes"); runtimes.Data[0].Status.LastOperation.Percent != 40 {
		b.Errorf("the list of runtimes is %+v, want the same percentage", runtimes.Data)
	}
}

func TestProgressOfAnOperation(t *testing.T) {
	at := func(step string, running bool, entries ...process.Entry) func(*process.Progress) {
		return func(progress *process.Progress) {
			for i := range entries {
				entries[i].Began, entries[i].End = progress.Now, progress.Now
			}

			progress.Record.Step, progress.Timeline = step, entries
			if running {
				progress.Record.StepBegan = progress.Now
			}
		}
	}
	entry := func(step string, attempt int, outcome process.Outcome) process.Entry {
		return process.Entry{Step: step, Attempt: attempt, Outcome: outcome, Message: "because"}
	}

	type standing struct {
		Attempt  int
		Why      string
		Finished bool
		Replica  bool
	}

	cases := map[string]struct {
		reason string
		state  process.State
		change func(*process.Progress)
		want   standing
	}{
		"Pending":   {"a pending operation is queued", process.Pending, nil, standing{Why: "Queued behind the earlier operations of this instance, if any."}},
		"FirstRun":  {"the first attempt", process.InProgress, at("A", true), standing{Attempt: 1, Replica: true}},
		"Again":     {"a new attempt clears the reason of the wait", process.InProgress, at("A", true, entry("A", 2, process.Retrying), entry("", 0, process.TakenOver)), standing{Attempt: 3, Replica: true}},
		"Succeeded": {"the count restarts after a success", process.InProgress, at("A", true, entry("A", 2, process.Retrying), entry("A", 3, process.Done)), standing{Attempt: 1, Replica: true}},
		"Other":     {"attempts of other steps do not count", process.InProgress, at("B", true, entry("A", 7, process.Retrying), entry("A", 8, process.Done)), standing{Attempt: 1, Replica: true}},
		"Shared":    {"an entry for several attempts counts as all of them", process.InProgress, at("A", true, entry("A", 1, process.Waiting), entry("A", 2, process.Waiting)), standing{Attempt: 3, Why: "because", Replica: true}},
		"Ended":     {"an ended operation has no current step", process.Failed, at("A", false, entry("A", 1, process.StepFailed)), standing{Finished: true}},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)

			var changes []func(*process.Progress)
			if test.change != nil {
				changes = append(changes, test.change)
			}

			id := b.operation("one", environment.KindProvision, test.state, changes...)
			answer := b.want(test.reason, b.do("operator", "GET", "/operations/"+id), http.StatusOK)
			shown := read[operatorapi.Operation](b, answer)

			got := standing{shown.Attempt, shown.Why, !shown.FinishedAt.IsZero(), shown.Replica != ""}
			if diff := cmp.Diff(test.want, got); diff != "" {
				b.Errorf("%s\nprogress: -want +got\n%s", test.reason, diff)
			}

			if (answer.Header.Get("Retry-After") == "") != test.state.Terminal() || shown.NextRun.IsZero() != test.state.Terminal() {
				b.Errorf("%s\nonly an unfinished operation has a next run: %+v", test.reason, answer)
			}
		})
	}
}

func TestListOfOperations(t *testing.T) {
	b := newBench(t)

	first := b.instance("one", process.Failed)
	second := b.instance("two", process.Succeeded)
	b.clock.SetTime(b.clock.Now().Add(time.Second))
	third := b.operation("two", environment.KindDeprovision, process.Pending)

	for query, want := range map[string][]string{
		"":                     {third, second, first},
		"?instance_id=two":     {third, second},
		"?kind=provision":      {second, first},
		"?state=pending":       {third},
		"?state=failed":        {first},
		"?state=in%20progress": nil,
		"?page=2&page_size=1":  {second},
		"?kind=bind":           nil,
	} {
		got := list[operatorapi.OperationList](b, "/operations"+query)

		var shown []string

		for _, operation := range got.Data {
			shown = append(shown, operation.ID)

			if operation.Timeline != nil {
				b.Error("a list includes timelines")
			}

			if operation.InstanceName != "name-"+operation.InstanceID {
				b.Errorf("operation of %s: the name of the instance is %q", operation.InstanceID, operation.InstanceName)
			}
		}

		if diff := cmp.Diff(want, shown); diff != "" || got.Data == nil {
			b.Errorf("%s: -want +got\n%s", query, diff)
		}
	}

	for query, want := range map[string]string{
		"kind=other": "The kind \\\"other\\\" is unknown. Use one of: provision,", "state=done": "The state \\\"done\\\" is unknown. Use one of: pending,",
	} {
		if response := b.do("viewer", "GET", "/operations?"+query); response.Status != http.StatusBadRequest || !strings.Contains(response.Raw, want) {
			b.Errorf("%s: %d %s, want %q", query, response.Status, response.Raw, want)
		}
	}

	page := list[operatorapi.OperationList](b, "/operations?page_size=2&total=true")
	if page.Cursor == "" || *page.TotalCount != 3 {
		b.Fatalf("first page: %+v", page)
	}

	rest := list[operatorapi.OperationList](b, "/operations?page_size=2&total=true&cursor="+page.Cursor)
	if len(rest.Data) != 1 || rest.Data[0].ID != first || rest.Cursor != "" || *rest.TotalCount != 3 {
		b.Errorf("last page: %+v", rest)
	}
}

func TestUnknownOperation(t *testing.T) {
	b := newBench(t)

	for _, id := range []string{"x", "%20", "a%2Fb"} {
		b.want("an unknown operation", b.do("viewer", "GET", "/operations/"+id), http.StatusNotFound)
	}

	b.want("no ID contains NUL", b.do("viewer", "GET", "/operations/%00"), http.StatusBadRequest)
}

func TestRemovedTimelineIsReported(t *testing.T) {
	b := newBench(t)
	id := b.operation("one", environment.KindProvision, process.Failed, func(progress *process.Progress) {
		progress.Record.FinishedAt = b.clock.Now()
	})
	removed := b.clock.Now().Add(time.Hour)

	if count, err := b.operations.RemoveTimelines(b.Context(), removed, removed, 10); err != nil || count != 1 {
		b.Fatalf("%d timelines were removed, %v", count, err)
	}

	shown := read[operatorapi.Operation](b, b.want("the operation is kept", b.do("viewer", "GET", "/operations/"+id), http.StatusOK))
	if len(shown.Timeline) != 0 || shown.TimelineRemovedAt.IsZero() || !shown.TimelineRemovedAt.Equal(removed) {
		b.Errorf("the operation lacks the removal of its timeline: %+v", shown)
	}
}

func TestEntriesOfSeveralAttempts(t *testing.T) {
	b := newBench(t)
	now := b.clock.Now()
	waits := func(attempt int, at time.Time) process.Entry {
		return process.Entry{Stage: "s", Step: "A", Attempt: attempt, Began: at, End: at, Outcome: process.Waiting, Message: "m", NextRun: at}
	}
	last := now.Add(time.Minute)
	id := b.operation("one", environment.KindProvision, process.InProgress, func(progress *process.Progress) {
		progress.Timeline, progress.Release, progress.Record.NextRun = []process.Entry{waits(1, now)}, true, last
	})

	claimed := storagetest.Claim(b, b.operations, process.Claim{Owner: "replica", Limit: 1, Now: last, Until: last}, environment.KindProvision)
	if _, err := b.operations.Save(b.Context(), process.Progress{
		Record: claimed[0].Record, Timeline: []process.Entry{waits(2, last)}, Release: true, Now: last,
	}); err != nil {
		b.Fatal(err)
	}

	shown := read[operatorapi.Operation](b, b.do("viewer", "GET", "/operations/"+id))
	want := operatorapi.TimelineEntry{
		Stage: "s", Step: "A", Attempt: 2, FirstAttempt: 1, Began: now, End: last, Outcome: "waiting", Message: "m", NextRun: last,
	}

	if diff := cmp.Diff(want, shown.Timeline[len(shown.Timeline)-1]); diff != "" {
		b.Errorf("last entry: -want +got\n%s", diff)
	}
}

// TestTraceOfAnOperation checks that an operation shows the trace of the request that ordered it.
func TestTraceOfAnOperation(t *testing.T) {
	const traceID = "0af7651916cd43dd8448eb211c80319c"

	b := newBench(t)
	id := b.operation("one", environment.KindProvision, process.Succeeded)

	if _, err := storage.Exec(t.Context(), b.db.Writer(), `UPDATE operations SET trace = ? WHERE id = ?`, "00-"+traceID+"-b7ad6b7169203331-01", id); err != nil {
		t.Fatal(err)
	}

	got := read[operatorapi.Operation](b, b.want("an operation", b.do("viewer", "GET", "/operations/"+id), http.StatusOK))
	if got.TraceID != traceID {
		t.Errorf("the trace is %q, want %s", got.TraceID, traceID)
	}
}
