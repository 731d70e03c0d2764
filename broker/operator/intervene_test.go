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
	"github.com/environment-broker/environment-broker/storage"
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

			told := b.answered(c.reason, b.intervene("cancel", id, because))
			if told.ID != id || told.State != string(c.wantState) || b.woken == 0 {
				b.Errorf("\n%s\ntold of %s, which is %s; the engine was woken %d times", c.reason, told.ID, told.State, b.woken)
			}

			if got := b.intervene("cancel", id, because); got.Status != c.wantAgain {
				b.Errorf("\n%s\nthe second time: want %d, got %d %s", c.reason, c.wantAgain, got.Status, got.Raw)
			}

			b.wantStory(c.reason, id, "accepted: provision", c.wantLine)
		}
	})
}

// TestCancelOfOneLeavesTheOthers has a pending operation behind another one: only that is canceled.
func TestCancelOfOneLeavesTheOthers(t *testing.T) {
	onEach(t, func(b *bench) {
		running := b.instance("one", process.InProgress)
		behind := b.operation("one", environment.KindDeprovision, process.Pending)

		b.answered("the one behind is canceled", b.intervene("cancel", behind, because))
		b.wantStory("the one before it goes on", running, "accepted: provision")
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

			told := b.answered(c.reason, b.intervene("retry", former, because))
			if told.ID == former || told.PredecessorID != former || told.State != "pending" || told.InstanceID != name || told.Kind != "provision" {
				b.Errorf("\n%s\ntold of %+v", c.reason, told)
			}

			if diff := cmp.Diff(c.wantStages, told.FinishedStages); diff != "" {
				b.Errorf("\n%s\nfinished stages: -want +got\n%s", c.reason, diff)
			}

			b.wantStory("each names the other", told.ID, "accepted: retry of "+former+" by operator: the quota was raised")
			b.wantStory("each names the other", former, "accepted: provision", "retried: as "+told.ID+" by operator: the quota was raised")

			if diff := cmp.Diff(string(b.payload(former)), string(b.payload(told.ID))); diff != "" {
				b.Errorf("\n%s\nwhat it knows: -former +retry\n%s", c.reason, diff)
			}

			kept := read[operatorapi.Operation](b, b.do("viewer", "GET", "/operations/"+former))
			if kept.State != string(c.state) || b.woken != woken+1 {
				b.Errorf("\n%s\nthe former one is %s, the engine was woken %d times", c.reason, kept.State, b.woken-woken)
			}
		}
	})
}

// TestManyRetriesOfTheSameMoment has operators and platforms want different things: what was accepted first holds.
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

			told := b.answered(c.reason, b.intervene("skip", id, c.body))
			if told.ID != id || told.Step != "Probe" || !told.Skippable || !told.NextRun.Equal(b.clock.Now()) {
				b.Errorf("\n%s\ntold of %+v", c.reason, told)
			}

			b.wantStory(c.reason, id, "accepted: provision", "skip requested: Probe: by operator: the quota was raised")

			record, err := b.operations.Get(b.Context(), b.operations.Reader(), id)
			want := process.Skip{Step: "Probe", Reason: "by operator: the quota was raised"}

			if err != nil || record.Skip != want || b.woken != woken+1 {
				b.Errorf("\n%s\nto be skipped is %+v (%v), the engine was woken %d times", c.reason, record.Skip, err, b.woken-woken)
			}
		}
	})
}

func TestRefusedInterventionsChangeNothing(t *testing.T) {
	probing := at("post_actions", "Probe", true, "start", "create_runtime", "check_runtime")
	succeeded, failed := process.Succeeded, process.Failed

	cases := map[string]struct {
		reason   string
		verb     string
		prepare  func(b *bench) string
		body     string
		want     int
		wantText string
	}{
		"cancel what ended":    {"it cannot be undone", "cancel", ended(succeeded), because, 409, "it is succeeded"},
		"cancel with a step":   {"a step says that a skip was meant", "cancel", ended(failed), `{"reason": "x", "step": "Probe"}`, 400, "only for a skip"},
		"cancel what is not":   {"there is no such operation", "cancel", unknown("x"), because, 404, "no such operation"},
		"an id with a slash":   {"an id is taken as it comes", "retry", unknown("a%2Fb"), because, 404, "no such operation"},
		"an id with a zero":    {"no database has such an id", "retry", unknown("%00"), because, 400, "path"},
		"a very long id":       {"an id is no more than a key", "skip", unknown(strings.Repeat("x", 5000)), because, 404, "no such operation"},
		"retry what runs":      {"it tries again by itself", "retry", running(probing), because, 409, "in progress"},
		"retry what succeeded": {"there is nothing left to do", "retry", ended(succeeded), because, 409, "succeeded"},
		"retry with a step":    {"a retry begins where it has to", "retry", ended(failed), `{"reason": "x", "step": "Order"}`, 400, "only for a skip"},
		"retry what is past": {
			"operations of an instance run in the order in which they were accepted", "retry", func(b *bench) string {
				id := b.instance("one", failed)
				b.operation("one", environment.KindDeprovision, process.Pending)

				return id
			}, because, 409, "A later operation of the instance has taken its place",
		},
		"retry of what is gone": {
			"nothing is left of the instance", "retry", func(b *bench) string {
				b.instance("one", succeeded)
				id := b.operation("one", environment.KindDeprovision, failed)
				b.drop("one")

				return id
			}, because, 409, "gone",
		},
		"retry of a kind that is gone": {
			"nobody would carry it, and no engine would start beside it", "retry", func(b *bench) string {
				b.instance("one", succeeded)

				return b.operation("one", "upgrade", failed)
			}, because, 409, "no process any more for operations of kind upgrade",
		},
		"retry of what cannot be read": {
			"the key is missing, which is told", "retry", func(b *bench) string {
				id := b.instance("one", failed)
				b.spoil(id)

				return id
			}, because, 409, "APP_DATABASE_SECRET_KEYS",
		},
		"skip what waits":         {"it has no step yet", "skip", func(b *bench) string { return b.instance("one", process.Pending) }, because, 409, "pending"},
		"skip what is canceled":   {"it ends at its next safe point", "skip", canceling(probing), because, 409, "canceling"},
		"skip what ended":         {"it is at no step", "skip", ended(failed), because, 409, "failed"},
		"skip before any step":    {"it was claimed this moment", "skip", running(at("", "", false)), because, 409, "not come to a step"},
		"skip what is needed":     {"what follows needs what it does", "skip", running(at("create_runtime", "Order", true, "start")), because, 409, "cannot be skipped"},
		"skip another step":       {"it has gone on since the operator looked", "skip", running(probing), `{"reason": "x", "step": "Check"}`, 409, `not at step "Check" but at "Probe"`},
		"skip an odd step":        {"a step is only compared", "skip", running(probing), `{"reason": "x", "step": "\u0000"}`, 409, "not at step"},
		"skip of a finished step": {"the next stage begins at this moment", "skip", running(at("post_actions", "Probe", false, "post_actions")), because, 409, "has gone on"},
		"no body":                 {"others want to know why", "cancel", running(probing), ``, 400, "reason is missing"},
		"null":                    {"others want to know why", "cancel", running(probing), `null`, 400, "reason is missing"},
		"no reason":               {"others want to know why", "cancel", running(probing), `{"step": ""}`, 400, "reason is missing"},
		"blank reason":            {"others want to know why", "cancel", running(probing), `{"reason": " \n\t\u0000\u200b"}`, 400, "reason is missing"},
		"long reason":             {"nobody reads a novel", "cancel", running(probing), `{"reason": "` + strings.Repeat("ü", 501) + `"}`, 400, "501 characters, 500 at most"},
		"another field":           {"who misspells a field means something by it", "cancel", running(probing), `{"reason": "x", "Why": "y"}`, 400, "cannot be read"},
		"two bodies":              {"which one is meant is not known", "cancel", running(probing), because + because, 400, "cannot be read"},
		"no JSON":                 {"it is not guessed", "cancel", running(probing), `reason=x`, 400, "cannot be read"},
		"a reason of a number":    {"it is not guessed", "cancel", running(probing), `{"reason": 7}`, 400, "cannot be read"},
		"too long a body":         {"it is not read to its end", "cancel", running(probing), `{"reason": "` + strings.Repeat("x", 70000) + `"}`, 413, "too large"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			id := c.prepare(b)
			before := b.everything()

			got := b.want(c.reason, b.intervene(c.verb, id, c.body), c.want)
			if text := read[operatorapi.Error](b, got).Description; !strings.Contains(text, c.wantText) {
				b.Errorf("\n%s\nthe answer is %q, want %q in it", c.reason, text, c.wantText)
			}

			if diff := cmp.Diff(before, b.everything()); diff != "" || b.woken != 0 {
				b.Errorf("\n%s\na refusal changes something, or wakes the engine: -before +after\n%s", c.reason, diff)
			}

			if lines := b.audited(); len(lines) != 1 || lines[0].Level != "warning" || lines[0].User != "operator" ||
				!strings.Contains(lines[0].Message, "not ") {
				b.Errorf("\n%s\nthe log has %+v", c.reason, lines)
			}
		})
	}
}

func ended(state process.State) func(*bench) string {
	return func(b *bench) string { return b.instance("one", state) }
}

func unknown(id string) func(*bench) string { return func(*bench) string { return id } }

func running(change func(*process.Progress)) func(*bench) string {
	return func(b *bench) string {
		b.instance("one", process.Succeeded)

		return b.operation("one", environment.KindProvision, process.InProgress, change)
	}
}

func canceling(change func(*process.Progress)) func(*bench) string {
	return func(b *bench) string {
		id := running(change)(b)

		b.inTx(func(tx storage.Tx) error {
			_, err := b.operations.CancelOne(b.Context(), tx, id, "a test", b.clock.Now())

			return err
		})

		return id
	}
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
		"any script": {"people write as they speak", `{"reason": "größer, 大きい 🙂"}`, "größer, 大きい 🙂"},
		"as long":    {"this much is kept", `{"reason": "` + strings.Repeat("ü", 500) + `"}`, strings.Repeat("ü", 500)},
	}

	onEach(t, func(b *bench) {
		for name, c := range cases {
			id := b.instance(name, process.InProgress)
			b.answered(c.reason, b.intervene("cancel", id, c.body))
			b.wantStory(c.reason, id, "accepted: provision", "cancel requested: by operator: "+c.want)
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

	want := []audit{
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
		"ended":     {"it is at no step any more", ended(process.Failed), false},
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
