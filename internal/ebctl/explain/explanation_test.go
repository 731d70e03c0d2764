package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/ebctl/explain"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

var now = time.Date(2026, 5, 1, 10, 5, 0, 0, time.UTC)

// ago is a moment so many seconds before now.
func ago(seconds int) *time.Time {
	moment := now.Add(-time.Duration(seconds) * time.Second)

	return &moment
}

func operation(change func(*operatorapi.Operation)) operatorapi.Operation {
	operation := operatorapi.Operation{
		ID: "op", InstanceID: "i", Kind: "provision", State: "in progress", CreatedAt: *ago(300),
		Stages: []string{"start", "create", "check"},
	}
	change(&operation)

	return operation
}

func TestOf(t *testing.T) {
	t.Parallel()

	watch := "Watch it: ebctl operation get op --wait"

	cases := map[string]struct {
		reason    string
		operation operatorapi.Operation
		summary   string
		why       string
		goesOn    string
		advice    []string
	}{
		"Pending": {
			reason:    "a pending operation waits for another one of its instance",
			operation: operation(func(o *operatorapi.Operation) { o.State = "pending" }),
			summary:   "The provision of instance i waits for its turn.",
			why:       "another operation of the instance has to end first",
			advice: []string{
				"See what else is done to the instance: ebctl operation list --instance i",
				"If it is not wanted any more, end it: ebctl operation cancel op --reason WHY",
			},
		},
		"Running": {
			reason:    "while a replica carries it nothing is waited for",
			operation: operation(func(o *operatorapi.Operation) { o.Replica, o.Why, o.NextRun = "replica-1", "old news", ago(0) }),
			summary:   "The provision of instance i is running.",
			advice:    []string{"Nothing needs to be done. " + watch},
		},
		"Waiting": {
			reason: "a step waits in its own words, until a time or an event",
			operation: operation(func(o *operatorapi.Operation) {
				o.Why, o.NextRun, o.WaitingFor = "the cluster is being created", ago(-20), "runtime-1"
			}),
			summary: "The provision of instance i waits.",
			why:     "the cluster is being created",
			goesOn:  "in 20s or when told of a change",
			advice:  []string{"Nothing needs to be done. " + watch},
		},
		"Due": {
			reason:    "what is due runs as soon as a worker is free",
			operation: operation(func(o *operatorapi.Operation) { o.NextRun = ago(3) }),
			summary:   "The provision of instance i is due and waits for a free worker.",
			goesOn:    "now",
			advice:    []string{"Nothing needs to be done. " + watch},
		},
		"Overdue": {
			reason:    "what is due for long is stuck behind the broker",
			operation: operation(func(o *operatorapi.Operation) { o.NextRun = ago(61) }),
			summary:   "The provision of instance i is due and waits for a free worker.",
			goesOn:    "now",
			advice: []string{
				"Nothing needs to be done. " + watch,
				"It is overdue and nobody carries it: check that the broker runs and has workers to spare (APP_WORKERS).",
			},
		},
		"HeldUp": {
			reason: "an error that may pass loses nothing, and names the system to look at",
			operation: operation(func(o *operatorapi.Operation) {
				o.Problem = &operatorapi.Problem{Message: "no answer", Component: "provisioner"}
				o.NextRun = ago(-5)
			}),
			summary: "The provision of instance i is held up by an error and tries again.",
			goesOn:  "in 5s",
			advice: []string{
				"Nothing is lost: it tries again by itself. " + watch,
				"If this lasts, check that the Provisioner runs and that the broker reaches it (APP_PROVISIONER_URL).",
				"If it is not wanted any more, end it: ebctl operation cancel op --reason WHY",
			},
		},
		"Skippable": {
			reason: "a step that nothing needs may be left out, also one that waits for what never comes",
			operation: operation(func(o *operatorapi.Operation) {
				o.Skippable, o.Step, o.StepBegan, o.NextRun = true, "Check", ago(3600), ago(-5)
			}),
			summary: "The provision of instance i waits.",
			goesOn:  "in 5s",
			advice: []string{
				"Nothing needs to be done. " + watch,
				"If what the step does is of no use any more, have it left out: ebctl operation skip op --step Check --reason WHY",
				"If it is not wanted any more, end it: ebctl operation cancel op --reason WHY",
			},
		},
		"NotYetStuck": {
			reason: "what takes its time is left alone",
			operation: operation(func(o *operatorapi.Operation) {
				o.Skippable, o.Step, o.StepBegan, o.NextRun = true, "Check", ago(3599), ago(-5)
			}),
			summary: "The provision of instance i waits.",
			goesOn:  "in 5s",
			advice:  []string{"Nothing needs to be done. " + watch},
		},
		"Canceling": {
			reason:    "a cancellation takes effect between two steps",
			operation: operation(func(o *operatorapi.Operation) { o.State, o.Replica = "canceling", "replica-1" }),
			summary:   "The provision of instance i is being canceled and ends before its next step.",
			advice:    []string{"Nothing needs to be done. " + watch},
		},
		"Succeeded": {
			reason:    "of a success there is no more to say than how long it took",
			operation: operation(func(o *operatorapi.Operation) { o.State, o.FinishedAt = "succeeded", ago(170) }),
			summary:   "The provision of instance i succeeded after 2m10s.",
		},
		"Skipped": {
			reason: "steps that gave up leave work for people",
			operation: operation(func(o *operatorapi.Operation) {
				o.State, o.FinishedAt, o.SkippedSteps = "succeeded", ago(170), []string{"Register"}
			}),
			summary: "The provision of instance i succeeded after 2m10s.",
			advice: []string{
				"Steps were skipped; the timeline tells why. Their work has to be done by hand.",
			},
		},
		"Failed": {
			reason: "a failed creation goes on, or its remains are removed; the log has what users must not see",
			operation: operation(func(o *operatorapi.Operation) {
				o.State, o.FinishedAt = "failed", ago(0)
				o.Problem = &operatorapi.Problem{Message: "internal error", Reason: "err_keb_internal", Component: "keb"}
			}),
			summary: "The provision of instance i failed after 5m00s.",
			advice: []string{
				"The cause stands in the log of the broker, in the lines with operation op.",
				"When the cause is gone, go on from where it failed: ebctl operation retry op --reason WHY",
				"Or remove what there is of it, then create it anew: ebctl instance delete i",
			},
		},
		"FailedDeletion": {
			reason: "a failed deletion is repeated, after a look at the cluster",
			operation: operation(func(o *operatorapi.Operation) {
				o.Kind, o.State, o.FinishedAt = "deprovision", "failed", ago(0)
				o.Problem = &operatorapi.Problem{Message: "finalizers are left", Component: "k8s client - cluster"}
			}),
			summary: "The deprovision of instance i failed after 5m00s.",
			advice: []string{
				"Look into the runtime: ebctl instance kubeconfig i",
				"When the cause is gone, go on from where it failed: ebctl operation retry op --reason WHY",
				"Or delete it again: ebctl instance delete i",
			},
		},
		"FailedAtSkippable": {
			reason: "a step that nothing needs is not worth a cluster",
			operation: operation(func(o *operatorapi.Operation) {
				o.Kind, o.State, o.FinishedAt, o.Step, o.Skippable = "update", "failed", ago(0), "Register", true
			}),
			summary: "The update of instance i failed after 5m00s.",
			advice: []string{
				"When the cause is gone, go on from where it failed: ebctl operation retry op --reason WHY",
				"Or go on without the step: ebctl operation retry op --skip Register --reason WHY",
				"The instance is told as it was before. Or ask for something else: ebctl instance update i --parameters JSON",
			},
		},
		"FailedSuspension": {
			reason: "who has half a cluster is told both ways on",
			operation: operation(func(o *operatorapi.Operation) {
				o.Kind, o.State, o.FinishedAt = "suspend", "failed", ago(0)
			}),
			summary: "The suspend of instance i failed after 5m00s.",
			advice: []string{
				"When the cause is gone, go on from where it failed: ebctl operation retry op --reason WHY",
				"Or suspend it again; until that has succeeded it is neither changed nor resumed: ebctl instance suspend i",
			},
		},
		"Retried": {
			reason: "what goes on elsewhere is not retried twice",
			operation: operation(func(o *operatorapi.Operation) {
				o.State, o.FinishedAt, o.Timeline = "failed", ago(0), []operatorapi.TimelineEntry{{Outcome: "retried"}}
			}),
			summary: "The provision of instance i failed after 5m00s.",
			advice:  []string{"It was retried: the end of the timeline names the operation that goes on."},
		},
		"Canceled": {
			reason:    "what canceled it is another operation of the instance, or an operator",
			operation: operation(func(o *operatorapi.Operation) { o.State, o.FinishedAt = "canceled", ago(240) }),
			summary:   "The provision of instance i was canceled after 1m00s.",
			advice: []string{
				"See what else is done to the instance: ebctl operation list --instance i",
				"Unless a later operation has taken its place, it can go on: ebctl operation retry op --reason WHY",
			},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := explain.Of(tc.operation, now)

			var why string
			if got.Wait != nil {
				why = got.Wait.Why
			}

			want := []any{tc.summary, tc.why, tc.goesOn, tc.advice}
			if diff := cmp.Diff(want, []any{got.Summary, why, got.GoesOn(), got.Advice}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSince(t *testing.T) {
	t.Parallel()

	entry := func(step, outcome string, attempt, began int) operatorapi.TimelineEntry {
		return operatorapi.TimelineEntry{Stage: "check", Step: step, Outcome: outcome, Attempt: attempt, Began: *ago(began)}
	}

	cases := map[string]struct {
		reason   string
		timeline []operatorapi.TimelineEntry
		want     *time.Time
	}{
		"FirstAttempt": {
			reason:   "the first attempt has no entry before it ends",
			timeline: []operatorapi.TimelineEntry{entry("Ask", "done", 1, 90)},
			want:     ago(5),
		},
		"Retries": {
			reason: "the first of several attempts counts, whatever ran in between",
			timeline: []operatorapi.TimelineEntry{
				entry("Ask", "done", 1, 90), entry("Wait", "waiting", 1, 80),
				entry("Ask", "done", 1, 60),
				{Outcome: "taken over", Began: *ago(55)},
				entry("Wait", "retrying", 2, 50),
			},
			want: ago(80),
		},
		"Shared": {
			reason: "a line that stands for several attempts begins with the first, and nothing before it counts",
			timeline: []operatorapi.TimelineEntry{
				entry("Wait", "waiting", 9, 95),
				{Stage: "check", Step: "Wait", Outcome: "waiting", FirstAttempt: 1, Attempt: 40, Began: *ago(80)},
			},
			want: ago(80),
		},
		"Again": {
			reason: "what was before the step last succeeded no longer counts",
			timeline: []operatorapi.TimelineEntry{
				entry("Wait", "waiting", 1, 90), entry("Wait", "done", 2, 80), entry("Ask", "retrying", 1, 70),
			},
			want: ago(5),
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := explain.Of(operation(func(o *operatorapi.Operation) {
				o.Stage, o.Step, o.StepBegan, o.Timeline = "check", "Wait", ago(5), tc.timeline
			}), now).Place

			if diff := cmp.Diff(tc.want, got.Since); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestElapsedBearsClocksThatDiffer(t *testing.T) {
	t.Parallel()

	future := explain.Of(operation(func(o *operatorapi.Operation) { o.CreatedAt = *ago(-10) }), now)
	if got := future.Elapsed(); got != 0 {
		t.Errorf("an operation accepted after now has just begun, got %s", got)
	}

	if got := explain.Of(operatorapi.Operation{}, now).Elapsed(); got != 0 {
		t.Errorf("an operation that nobody has told of yet has taken no time, got %s", got)
	}
}

func TestWriteText(t *testing.T) {
	t.Parallel()

	var text strings.Builder

	err := explain.Of(operation(func(o *operatorapi.Operation) {
		o.Stage, o.Step, o.Attempt, o.StepBegan = "a stage of old", "Wait", 7, ago(38)
		o.Why, o.NextRun, o.WaitingFor = "the cluster\nis being created", ago(-2), "runtime-1"
		o.SkippedSteps = []string{"One", "Two"}
	}), now).WriteText(&text)
	if err != nil {
		t.Fatal(err)
	}

	want := `The provision of instance i waits.

Operation  op, in progress
Stage      a stage of old
Step       Wait, attempt 7
Since      2026-05-01 10:04:22Z (38s)
Waits      the cluster is being created
Goes on    in 2s or when told of a change
Skipped    One, Two
Accepted   2026-05-01 10:00:00Z (5m00s ago)

What one can do
  - Nothing needs to be done. Watch it: ebctl operation get op --wait
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
