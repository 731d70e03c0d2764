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
		"pending":     {"what has not begun ends at once", process.Pending, process.Canceled, http.StatusConflict, "operation canceled: by operator: the quota was raised"},
		"in progress": {"what runs ends at its next safe point", process.InProgress, process.Canceling, http.StatusAccepted, "cancel requested: by operator: the quota was raised"},
	}

	onEach(t, func(b *bench) {
		for name, c := range cases {
			id := b.instance(name, c.state)

			answer := b.answered(c.reason, b.intervene("cancel", id, because))
			if answer.ID != id || answer.State != operatorapi.OperationState(c.wantState) || b.woken == 0 {
				b.Errorf("\n%s\nthe answer is %s, which is %s; the engine was woken %d times", c.reason, answer.ID, answer.State, b.woken)
			}

			if got := b.intervene("cancel", id, because); got.Status != c.wantAgain {
				b.Errorf("\n%s\nthe second time: want %d, got %d %s", c.reason, c.wantAgain, got.Status, got.Raw)
			}

			b.wantTimeline(c.reason, id, "accepted: provision", c.wantLine)
		}
	})
}

// TestCancelOfOneLeavesTheOthers has a pending operation behind another one: only that is canceled.
func TestCancelOfOneLeavesTheOthers(t *testing.T) {
	onEach(t, func(b *bench) {
		running := b.instance("one", process.InProgress)
		behind := b.operation("one", environment.KindDeprovision, process.Pending)

		b.answered("the one behind is canceled", b.intervene("cancel", behind, because))
		b.wantTimeline("the one before it goes on", running, "accepted: provision")
	})
}

func TestRetry(t *testing.T) {
	cases := map[string]struct {
		reason     string
		state      process.State
		change     func(*process.Progress)
		wantStages []string
	}{
		"failed":     {"it begins with the stage that failed", process.Failed, at("create_runtime", "Order", true, "start"), []string{"start"}},
		"waited":     {"a stage that waits is led to by the one that orders", process.Failed, at("check_runtime", "Check", true, "start", "create_runtime"), []string{"start"}},
		"late":       {"what is done is not done again", process.Failed, at("post_actions", "Probe", true, "start", "create_runtime", "check_runtime"), []string{"start", "create_runtime", "check_runtime"}},
		"canceled":   {"what was canceled goes on too", process.Canceled, at("create_runtime", "Order", true, "start"), []string{"start"}},
		"at its end": {"what was canceled when all was done has only to end", process.Canceled, at("post_actions", "Probe", true, "start", "create_runtime", "check_runtime", "post_actions"), []string{"start", "create_runtime", "check_runtime", "post_actions"}},
	}

	onEach(t, func(b *bench) {
		for name, c := range cases {
			b.instance(name, process.Succeeded)
			former, woken := b.operation(name, environment.KindProvision, c.state, c.change), b.woken

			answer := b.answered(c.reason, b.intervene("retry", former, because))
			if answer.ID == former || answer.PredecessorID != former || answer.State != "pending" || answer.InstanceID != name || answer.Kind != "provision" {
				b.Errorf("\n%s\nthe answer is %+v", c.reason, answer)
			}

			if diff := cmp.Diff(c.wantStages, answer.FinishedStages); diff != "" {
				b.Errorf("\n%s\nfinished stages: -want +got\n%s", c.reason, diff)
			}

			b.wantTimeline("each names the other", answer.ID, "accepted: retry of "+former+" by operator: the quota was raised")
			b.wantTimeline("each names the other", former, "accepted: provision", "retried: as "+answer.ID+" by operator: the quota was raised")

			if diff := cmp.Diff(string(b.payload(former)), string(b.payload(answer.ID))); diff != "" {
				b.Errorf("\n%s\nwhat it knows: -former +retry\n%s", c.reason, diff)
			}

			kept := read[operatorapi.Operation](b, b.do("viewer", "GET", "/operations/"+former))
			if kept.State != operatorapi.OperationState(c.state) || b.woken != woken+1 {
				b.Errorf("\n%s\nthe former one is %s, the engine was woken %d times", c.reason, kept.State, b.woken-woken)
			}
		}
	})
}

// TestRetryWithoutTheStepThatFailed is for a step that fails at once: it could never be skipped while it runs.
func TestRetryWithoutTheStepThatFailed(t *testing.T) {
	onEach(t, func(b *bench) {
		former := failedAt(at("post_actions", "Probe", true, "start", "create_runtime", "check_runtime"))(b)

		answer := b.answered("a retry", b.intervene("retry", former, `{"reason": "nobody needs it", "step": "Probe"}`))
		b.wantTimeline("who and why", answer.ID,
			"accepted: retry of "+former+" by operator: nobody needs it", "skip requested: Probe: by operator: nobody needs it")

		record, err := b.operations.Get(b.Context(), b.operations.Reader(), answer.ID)
		if want := (process.Skip{Step: "Probe", Reason: "by operator: nobody needs it"}); err != nil || record.Skip != want || answer.State != "pending" {
			b.Errorf("of %s to be skipped is %+v, %v", answer.State, record.Skip, err)
		}
	})
}

// TestRetryLeavesOutWhatWasSkipped checks that a retry skips the same steps and that its first entry names them. Naming the step again changes nothing.
func TestRetryLeavesOutWhatWasSkipped(t *testing.T) {
	cases := map[string]string{"a retry": because, "a retry without the step": `{"reason": "the quota was raised", "step": "Probe"}`}

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
					b.Errorf("%s: %v, still to be skipped is %+v, skipped -want +got\n%s", name, err, record.Skip, diff)
				}
			})
		})
	}
}

// TestManyRetriesOfTheSameMoment sends requests of operators and platforms concurrently: only the first is accepted.
func TestManyRetriesOfTheSameMoment(t *testing.T) {
	onEach(t, func(b *bench) {
		id := b.instance("one", process.Failed)

		const operators = 8

		var (
			asking   sync.WaitGroup
			statuses [operators]int
		)

		for i := range operators {
			asking.Go(func() { statuses[i] = b.intervene("retry", id, because).Status })
		}

		asking.Wait()

		count := map[int]int{}
		for _, status := range statuses {
			count[status]++
		}

		if diff := cmp.Diff(map[int]int{http.StatusAccepted: 1, http.StatusConflict: operators - 1}, count); diff != "" {
			b.Errorf("answers: -want +got\n%s", diff)
		}

		if all, err := b.operations.OfInstance(b.Context(), b.operations.Reader(), "one"); err != nil || len(all) != 2 {
			b.Errorf("there are %d operations, %v", len(all), err)
		}
	})
}

func TestSkip(t *testing.T) {
	cases := map[string]struct {
		reason   string
		body     string
		released bool
	}{
		"present": {"without a name it is the present step", because, true},
		"named":   {"with a name it is sure which one", `{"reason": "the quota was raised", "step": "Probe"}`, true},
		"held":    {"a step that runs at this moment is left out when it comes back", because, false},
	}

	onEach(t, func(b *bench) {
		for name, c := range cases {
			b.instance(name, process.Succeeded)
			id, woken := b.operation(name, environment.KindProvision, process.InProgress,
				at("post_actions", "Probe", c.released, "start", "create_runtime", "check_runtime")), b.woken

			answer := b.answered(c.reason, b.intervene("skip", id, c.body))
			if answer.ID != id || answer.Step != "Probe" || !answer.Skippable || !answer.NextRun.Equal(b.clock.Now()) {
				b.Errorf("\n%s\nthe answer is %+v", c.reason, answer)
			}

			b.wantTimeline(c.reason, id, "accepted: provision", "skip requested: Probe: by operator: the quota was raised")

			record, err := b.operations.Get(b.Context(), b.operations.Reader(), id)
			want := process.Skip{Step: "Probe", Reason: "by operator: the quota was raised"}

			if err != nil || record.Skip != want || b.woken != woken+1 {
				b.Errorf("\n%s\nto be skipped is %+v (%v), the engine was woken %d times", c.reason, record.Skip, err, b.woken-woken)
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
		"spaces":     {"nobody sees them", `{"reason": "  it is\tover  "}`, "it is over"},
		"lines":      {"a line of the timeline is a line", `{"reason": "first\r\n\nsecond"}`, "first second"},
		"controls":   {"no reason paints on a terminal, and no zero reaches PostgreSQL", `{"reason": "a\u0000b\u001b[31mc\u202ed"}`, "a b [31mc d"},
		"any script": {"people write as they speak", `{"reason": "größer, больше 🙂"}`, "größer, больше 🙂"},
		"as long":    {"this much is kept", `{"reason": "` + strings.Repeat("ü", 500) + `"}`, strings.Repeat("ü", 500)},
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

	b.intervene("retry", id, because)
	b.send("admin", "POST", "/operations/"+id+"/cancel", strings.NewReader(`{"reason": "nobody wants it"}`))

	failed := b.instance("two", process.Failed)
	retry := b.answered("a retry", b.intervene("retry", failed, because)).ID

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

func TestWhetherAStepMayBeSkippedIsTold(t *testing.T) {
	cases := map[string]struct {
		reason  string
		prepare func(*bench) string
		want    bool
	}{
		"skippable": {"nothing later needs it", running(at("post_actions", "Probe", true)), true},
		"needed":    {"what follows needs it", running(at("create_runtime", "Order", true)), false},
		"finished":  {"it is done, the next one has not begun", running(at("post_actions", "Probe", false, "post_actions")), false},
		"canceling": {"it ends anyway", canceling(at("post_actions", "Probe", true)), false},
		"failed":    {"a retry may do without it", failedAt(at("post_actions", "Probe", true)), true},
		"ended":     {"it is at no step any more", ended(process.Succeeded), false},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			id := c.prepare(b)

			shown := read[operatorapi.Operation](b, b.want(c.reason, b.do("viewer", "GET", "/operations/"+url.PathEscape(id)), http.StatusOK))
			if shown.Skippable != c.want {
				b.Errorf("%s: it may be skipped is %t", c.reason, shown.Skippable)
			}
		})
	}
}
