package operator_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

func TestCancel(t *testing.T) {
	cases := map[string]struct {
		reason    string
		state     process.State
		wantState process.State
		wantAgain int
		wantLine  string
	}{
		"pending":     {"a pending operation ends at once", process.Pending, process.Canceled, http.StatusConflict, "operation canceled: by operator: the quota was raised"},
		"in progress": {"a running operation ends at its next safe point", process.InProgress, process.Canceling, http.StatusAccepted, "cancel requested: by operator: the quota was raised"},
	}

	onEach(t, func(b *bench) {
		for name, c := range cases {
			id := b.instance(name, c.state)

			answer := b.answered(c.reason, b.intervene("cancel", id, onlyReason))
			if answer.ID != id || answer.State != operatorapi.OperationState(c.wantState) || b.woken == 0 {
				b.Errorf("%s\nthe response is operation %s in state %s; the engine was woken %d times", c.reason, answer.ID, answer.State, b.woken)
			}

			if got := b.intervene("cancel", id, onlyReason); got.Status != c.wantAgain {
				b.Errorf("%s\nrepeated: want %d, got %d %s", c.reason, c.wantAgain, got.Status, got.Raw)
			}

			b.wantTimeline(c.reason, id, "accepted: provision", c.wantLine)
		}
	})
}

// TestCancelAffectsOneOperation cancels a pending operation that is queued behind a running one. The running
// operation must continue.
func TestCancelAffectsOneOperation(t *testing.T) {
	onEach(t, func(b *bench) {
		running := b.instance("one", process.InProgress)
		behind := b.operation("one", environment.KindDeprovision, process.Pending)

		b.answered("only the pending operation is canceled", b.intervene("cancel", behind, onlyReason))
		b.wantTimeline("the running operation continues", running, "accepted: provision")
	})
}

func TestRetry(t *testing.T) {
	cases := map[string]struct {
		reason     string
		state      process.State
		change     func(*process.Progress)
		wantStages []string
	}{
		"failed":     {"a retry starts with the failed stage", process.Failed, at("create_runtime", "Order", true, "start"), []string{"start"}},
		"waited":     {"a retry of a stage that polls starts with the stage that orders", process.Failed, at("check_runtime", "Check", true, "start", "create_runtime"), []string{"start"}},
		"late":       {"finished stages are not repeated", process.Failed, at("post_actions", "Probe", true, "start", "create_runtime", "check_runtime"), []string{"start", "create_runtime", "check_runtime"}},
		"canceled":   {"canceled operations can be retried", process.Canceled, at("create_runtime", "Order", true, "start"), []string{"start"}},
		"at its end": {"the cancellation has discarded the effect of the last stage", process.Canceled, at("post_actions", "Probe", true, "start", "create_runtime", "check_runtime", "post_actions"), []string{"start", "create_runtime", "check_runtime"}},
	}

	onEach(t, func(b *bench) {
		for name, c := range cases {
			b.instance(name, process.Succeeded)
			former, woken := b.operation(name, environment.KindProvision, c.state, c.change), b.woken

			answer := b.answered(c.reason, b.intervene("retry", former, onlyReason))
			if answer.ID == former || answer.PredecessorID != former || answer.State != "pending" || answer.InstanceID != name || answer.Kind != "provision" {
				b.Errorf("%s\nthe response is %+v", c.reason, answer)
			}

			if diff := cmp.Diff(c.wantStages, answer.FinishedStages); diff != "" {
				b.Errorf("\n%s\nfinished stages: -want +got\n%s", c.reason, diff)
			}

			b.wantTimeline("both operations name each other", answer.ID, "accepted: retry of "+former+" by operator: the quota was raised")
			b.wantTimeline("both operations name each other", former, "accepted: provision", "retried: as "+answer.ID+" by operator: the quota was raised")

			if diff := cmp.Diff(string(b.payload(former)), string(b.payload(answer.ID))); diff != "" {
				b.Errorf("%s\ndata: -former +retry\n%s", c.reason, diff)
			}

			kept := read[operatorapi.Operation](b, b.do("viewer", "GET", "/operations/"+former))
			if kept.State != operatorapi.OperationState(c.state) || b.woken != woken+1 {
				b.Errorf("%s\nthe original operation is %s and the engine was woken %d times", c.reason, kept.State, b.woken-woken)
			}
		}
	})
}

// TestRetrySkipsTheFailedStep retries an operation and skips the step that failed.
func TestRetrySkipsTheFailedStep(t *testing.T) {
	onEach(t, func(b *bench) {
		former := failedAt(at("post_actions", "Probe", true, "start", "create_runtime", "check_runtime"))(b)

		answer := b.answered("a retry", b.intervene("retry", former, `{"reason": "nobody needs it", "step": "Probe"}`))
		b.wantTimeline("requester and reason", answer.ID,
			"accepted: retry of "+former+" by operator: nobody needs it", "skip requested: Probe: by operator: nobody needs it")

		record, err := b.operations.Get(b.Context(), b.operations.Reader(), answer.ID)
		if want := (process.Skip{Step: "Probe", Reason: "by operator: nobody needs it"}); err != nil || record.Skip != want || answer.State != "pending" {
			b.Errorf("the retry in state %s has the skip %+v, %v", answer.State, record.Skip, err)
		}
	})
}

// TestRetryKeepsSkips checks that a retry skips the steps that the original operation skipped, and that the first
// entry of its timeline names them. Naming such a step in the request makes no difference.
func TestRetryKeepsSkips(t *testing.T) {
	cases := map[string]string{"a retry": onlyReason, "a retry without the step": `{"reason": "the quota was raised", "step": "Probe"}`}

	for name, body := range cases {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(b *bench) {
				former := failedAt(func(progress *process.Progress) {
					at("post_actions", "Probe", true, "start", "create_runtime", "check_runtime")(progress)
					progress.Record.SkippedSteps = []string{"Probe"}
				})(b)

				answer := b.answered(name, b.intervene("retry", former, body))
				b.wantTimeline(name, answer.ID, "accepted: retry of "+former+", again without Probe, by operator: the quota was raised")

				record, err := b.operations.Get(b.Context(), b.operations.Reader(), answer.ID)
				if diff := cmp.Diff([]string{"Probe"}, answer.SkippedSteps); diff != "" || err != nil || record.Skip != (process.Skip{}) {
					b.Errorf("%s: %v, requested skip %+v, skipped -want +got\n%s", name, err, record.Skip, diff)
				}
			})
		})
	}
}

// TestLaterOperation checks that an operation that failed or was canceled names the newest later operation of its instance, which prevents a
// retry. Operations of bindings have an order of their own.
func TestLaterOperation(t *testing.T) {
	onEach(t, func(b *bench) {
		failed := b.instance("one", process.Failed)
		unbind := b.operation(environment.BindingKey("one", "binding"), environment.KindUnbind, process.Failed)
		later := func(id string) string {
			return read[operatorapi.Operation](b, b.want("an operation", b.do("viewer", "GET", "/operations/"+id), http.StatusOK)).LaterOperationID
		}

		if got := later(failed); got != "" {
			b.Errorf("the newest operation of the instance names the later operation %q", got)
		}

		canceled := b.operation("one", environment.KindUpdate, process.Canceled)
		newest := b.operation("one", environment.KindDeprovision, process.Pending)

		for id, want := range map[string]string{failed: newest, canceled: newest, newest: "", unbind: ""} {
			if got := later(id); got != want {
				b.Errorf("operation %s names the later operation %q, want %q", id, got, want)
			}
		}
	})
}

// TestConcurrentRetries retries a failed operation with several concurrent requests. Only one of them may be
// accepted.
func TestConcurrentRetries(t *testing.T) {
	onEach(t, func(b *bench) {
		id := b.instance("one", process.Failed)

		const operators = 8

		var (
			asking   sync.WaitGroup
			statuses [operators]int
		)

		for i := range operators {
			asking.Go(func() { statuses[i] = b.intervene("retry", id, onlyReason).Status })
		}

		asking.Wait()

		count := map[int]int{}
		for _, status := range statuses {
			count[status]++
		}

		if diff := cmp.Diff(map[int]int{http.StatusAccepted: 1, http.StatusConflict: operators - 1}, count); diff != "" {
			b.Errorf("responses: -want +got\n%s", diff)
		}

		if all, err := b.operations.OfInstance(b.Context(), b.operations.Reader(), "one"); err != nil || len(all) != 2 {
			b.Errorf("got %d operations, %v", len(all), err)
		}
	})
}

func TestSkip(t *testing.T) {
	cases := map[string]struct {
		reason   string
		body     string
		released bool
	}{
		"present": {"without a name the current step is skipped", onlyReason, true},
		"named":   {"the name must match the current step", `{"reason": "the quota was raised", "step": "Probe"}`, true},
		"held":    {"a running step is skipped after its attempt", onlyReason, false},
	}

	onEach(t, func(b *bench) {
		for name, c := range cases {
			b.instance(name, process.Succeeded)
			id, woken := b.operation(name, environment.KindProvision, process.InProgress,
				at("post_actions", "Probe", c.released, "start", "create_runtime", "check_runtime")), b.woken

			answer := b.answered(c.reason, b.intervene("skip", id, c.body))
			if answer.ID != id || answer.Step != "Probe" || !answer.Skippable || !answer.NextRun.Equal(b.clock.Now()) {
				b.Errorf("%s\nthe response is %+v", c.reason, answer)
			}

			b.wantTimeline(c.reason, id, "accepted: provision", "skip requested: Probe: by operator: the quota was raised")

			record, err := b.operations.Get(b.Context(), b.operations.Reader(), id)
			want := process.Skip{Step: "Probe", Reason: "by operator: the quota was raised"}

			if err != nil || record.Skip != want || b.woken != woken+1 {
				b.Errorf("%s\nthe requested skip is %+v (%v), the engine was woken %d times", c.reason, record.Skip, err, b.woken-woken)
			}
		}
	})
}

func TestReasonsAreKeptAsOneLine(t *testing.T) {
	cases := map[string]struct {
		reason string
		body   string
		want   string
	}{
		"spaces":     {"leading and trailing spaces are removed", `{"reason": "  it is\tover  "}`, "it is over"},
		"lines":      {"a reason becomes one line", `{"reason": "first\r\n\nsecond"}`, "first second"},
		"controls":   {"control characters are removed", `{"reason": "a\u0000b\u001b[31mc\u202ed"}`, "a b [31mc d"},
		"any script": {"any script is kept", `{"reason": "größer, больше 🙂"}`, "größer, больше 🙂"},
		"as long":    {"the maximum length is kept", `{"reason": "` + strings.Repeat("ü", 500) + `"}`, strings.Repeat("ü", 500)},
	}

	onEach(t, func(b *bench) {
		for name, c := range cases {
			id := b.instance(name, process.InProgress)
			b.answered(c.reason, b.intervene("cancel", id, c.body))
			b.wantTimeline(c.reason, id, "accepted: provision", "cancel requested: by operator: "+c.want)
		}
	})
}

func TestInterventionsAreAudited(t *testing.T) {
	b := newBench(t)
	id := b.instance("one", process.InProgress)

	b.intervene("retry", id, onlyReason)
	b.send("admin", "POST", "/operations/"+id+"/cancel", strings.NewReader(`{"reason": "nobody wants it"}`))

	failed := b.instance("two", process.Failed)
	retry := b.answered("a retry", b.intervene("retry", failed, onlyReason)).ID

	want := []auditLine{
		{Level: "warning", Message: "audit: operation not retried", User: "operator", Operation: id, Reason: "the quota was raised"},
		{
			Level: "info", Message: "audit: operation canceled", User: "admin", Operation: id, Instance: "one", Kind: "provision",
			Reason: "nobody wants it",
		},
		{
			Level: "info", Message: "audit: operation retried", User: "operator", Operation: failed, Successor: retry, Instance: "two",
			Kind: "provision", Reason: "the quota was raised",
		},
	}
	if diff := cmp.Diff(want, b.audited()); diff != "" {
		b.Errorf("audit: -want +got\n%s", diff)
	}
}

func TestSkippable(t *testing.T) {
	cases := map[string]struct {
		reason  string
		prepare func(*bench) string
		want    bool
	}{
		"skippable": {"no later step needs it", running(at("post_actions", "Probe", true)), true},
		"needed":    {"later steps need it", running(at("create_runtime", "Order", true)), false},
		"finished":  {"the step is done, the next one has not started", running(at("post_actions", "Probe", false, "post_actions")), false},
		"canceling": {"a canceling operation ends anyway", canceling(at("post_actions", "Probe", true)), false},
		"failed":    {"a retry may skip it", failedAt(at("post_actions", "Probe", true)), true},
		"ended":     {"an ended operation has no current step", ended(process.Succeeded), false},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			id := c.prepare(b)

			shown := read[operatorapi.Operation](b, b.want(c.reason, b.do("viewer", "GET", "/operations/"+url.PathEscape(id)), http.StatusOK))
			if shown.Skippable != c.want {
				b.Errorf("%s: skippable is %t", c.reason, shown.Skippable)
			}
		})
	}
}
