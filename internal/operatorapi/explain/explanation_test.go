package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/ebctl/explaintext"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/explain"
)

var now = time.Date(2026, 5, 1, 10, 5, 0, 0, time.UTC)

func ago(seconds int) time.Time {
	return now.Add(-time.Duration(seconds) * time.Second)
}

func operation(change func(*operatorapi.Operation)) operatorapi.Operation {
	operation := operatorapi.Operation{
		ID: "op", InstanceID: "i", Kind: "provision", State: "in progress", CreatedAt: ago(300),
		Stages: []string{"start", "create", "check"},
	}
	change(&operation)

	return operation
}

// repeating returns a function that gives an operation a timeline: its last attempts have waited with the same message for the
// given number of seconds, after an attempt with a different message.
func repeating(seconds int) func(*operatorapi.Operation) {
	const step, why = "Remove", "a previous operation is in progress"

	return func(o *operatorapi.Operation) {
		o.Step, o.Why, o.NextRun = step, why, ago(-5)
		o.Timeline = []operatorapi.TimelineEntry{
			{Step: step, Attempt: 1, Began: ago(seconds + 10), End: ago(seconds + 10), Outcome: "waiting", Message: "the Provisioner accepted the removal"},
			{Step: step, Attempt: 2, Began: ago(seconds), End: ago(seconds), Outcome: "waiting", Message: why},
			{Step: step, Attempt: 9, FirstAttempt: 3, Began: ago(seconds - 5), End: ago(5), Outcome: "waiting", Message: why},
		}
	}
}

func TestOf(t *testing.T) {
	t.Parallel()

	watch := "Follow the operation: ebctl operation get op --wait"

	cases := map[string]struct {
		reason    string
		operation operatorapi.Operation
		summary   string
		why       string
		continues string
		givesUp   string
		advice    []string
	}{
		"Pending": {
			reason:    "a pending operation is queued",
			operation: operation(func(o *operatorapi.Operation) { o.State = "pending" }),
			summary:   "The provision operation of instance i is queued.",
			why:       "queued behind earlier operations of the instance",
			advice: []string{
				"List the operations of the instance: ebctl operation list --instance i",
				"To cancel the operation: ebctl operation cancel op --reason REASON",
			},
		},
		"Running": {
			reason: "a running operation does not wait",
			operation: operation(func(o *operatorapi.Operation) {
				o.Replica, o.Why, o.NextRun = "replica-1", "the cluster is being created", ago(0)
			}),
			summary: "The provision operation of instance i is running.",
			advice:  []string{"No action is needed. " + watch},
		},
		"Conductor": {
			reason:    "the operation of an orchestration has no instance",
			operation: operation(func(o *operatorapi.Operation) { o.Kind, o.InstanceID, o.Replica = "orchestrate", "", "replica-1" }),
			summary:   "The orchestrate operation is running.",
			advice:    []string{"No action is needed. " + watch},
		},
		"Waiting": {
			reason: "the step states the reason; the wait ends at a time or on an event",
			operation: operation(func(o *operatorapi.Operation) {
				o.Why, o.NextRun, o.WaitingFor = "the cluster is being created", ago(-20), "runtime-1"
			}),
			summary:   "The provision operation of instance i is waiting.",
			why:       "the cluster is being created",
			continues: "in 20s, or earlier on an event",
			advice:    []string{"No action is needed. " + watch},
		},
		"GivesUp": {
			reason: "the step gives up if it does not succeed",
			operation: operation(func(o *operatorapi.Operation) {
				o.Why, o.NextRun, o.GivesUpAt, o.StepOptional = "AvS does not respond", ago(-20), ago(-3600), true
			}),
			summary:   "The provision operation of instance i is waiting.",
			why:       "AvS does not respond",
			continues: "in 20s",
			givesUp:   "in about 1h00m at the latest: the operation continues without the step",
			advice:    []string{"No action is needed. " + watch},
		},
		"Due": {
			reason:    "a due operation runs as soon as a worker is free",
			operation: operation(func(o *operatorapi.Operation) { o.NextRun = ago(3) }),
			summary:   "The provision operation of instance i is due and waiting for a free worker.",
			continues: "now",
			advice:    []string{"No action is needed. " + watch},
		},
		"Overdue": {
			reason:    "a long overdue operation points to the broker",
			operation: operation(func(o *operatorapi.Operation) { o.NextRun = ago(61) }),
			summary:   "The provision operation of instance i is due and waiting for a free worker.",
			continues: "now",
			advice: []string{
				"No action is needed. " + watch,
				"The operation is overdue. Check that the broker is running and has free workers (APP_WORKERS).",
			},
		},
		"HeldUp": {
			reason: "a temporary error names the system to check",
			operation: operation(func(o *operatorapi.Operation) {
				o.Problem = operatorapi.Problem{Message: "no answer", Component: "provisioner"}
				o.NextRun = ago(-5)
			}),
			summary:   "The provision operation of instance i is delayed by an error and will be retried.",
			continues: "in 5s",
			advice: []string{
				"The broker retries on its own. " + watch,
				"If this persists, check that the Provisioner is running and that the broker can reach it (APP_PROVISIONER_URL).",
				"To cancel the operation: ebctl operation cancel op --reason REASON",
			},
		},
		"Responds": {
			reason: "a response from the Provisioner shows that its address is correct",
			operation: operation(func(o *operatorapi.Operation) {
				o.Problem = operatorapi.Problem{Message: "the Provisioner refused to upgrade", Component: "provisioner"}
				o.System = operatorapi.System{Name: "provisioner", State: "closed", CallsLimit: 32}
				o.NextRun = ago(-5)
			}),
			summary:   "The provision operation of instance i is delayed by an error and will be retried.",
			continues: "in 5s",
			advice: []string{
				"The broker retries on its own. " + watch,
				"The Provisioner responds, but reports a problem. Find the cause in the Provisioner's log, or with 'ebctl provisioner operation list'.",
				"To cancel the operation: ebctl operation cancel op --reason REASON",
			},
		},
		"Repeats": {
			reason:    "the same message for half an hour is suspicious",
			operation: operation(repeating(1800)),
			summary:   "The provision operation of instance i is waiting.",
			why:       "a previous operation is in progress",
			continues: "in 5s",
			advice: []string{
				"The message has been the same for 30m00s. Check the system that it names: the operation might not continue on its own.",
				"If a Kyma Provisioner was killed during an operation on this runtime, nothing continues that operation. To end it, see docs/operator/kyma-provisioner.md.",
			},
		},
		"RepeatsShortly": {
			reason:    "a message may repeat for a while",
			operation: operation(repeating(1799)),
			summary:   "The provision operation of instance i is waiting.",
			why:       "a previous operation is in progress",
			continues: "in 5s",
			advice:    []string{"No action is needed. " + watch},
		},
		"WrongPassword": {
			reason: "a rejected password is not a failure of the network",
			operation: operation(func(o *operatorapi.Operation) {
				o.Problem = operatorapi.Problem{
					Message: "the Provisioner could not create the runtime: it returned HTTP status 401 Unauthorized",
					Reason:  "err_http_status_code", Component: "provisioner",
				}
				o.NextRun = ago(-5)
			}),
			summary:   "The provision operation of instance i is delayed by an error and will be retried.",
			continues: "in 5s",
			advice: []string{
				"The broker retries on its own. " + watch,
				"The Provisioner rejects the broker's credentials. Set the broker's APP_PROVISIONER_USER and APP_PROVISIONER_PASSWORD to a user in " +
					"the Provisioner's APP_AUTH_BASIC_USERS, and restart the broker.",
				"To cancel the operation: ebctl operation cancel op --reason REASON",
			},
		},
		"WrongPath": {
			reason: "the log of the Provisioner does not have requests for a wrong path",
			operation: operation(func(o *operatorapi.Operation) {
				o.Problem = operatorapi.Problem{
					Message: "the Provisioner could not create the runtime: it returned HTTP status 405 Method Not Allowed",
					Reason:  "err_http_status_code", Component: "provisioner",
				}
				o.System = operatorapi.System{Name: "provisioner", State: "closed"}
				o.NextRun = ago(-5)
			}),
			summary:   "The provision operation of instance i is delayed by an error and will be retried.",
			continues: "in 5s",
			advice: []string{
				"The broker retries on its own. " + watch,
				"The server responds, but not as a Provisioner. Set the broker's APP_PROVISIONER_URL to the address of the GraphQL API, which ends " +
					"with /graphql, and restart the broker.",
				"To cancel the operation: ebctl operation cancel op --reason REASON",
			},
		},
		"Rejected": {
			reason: "a Provisioner that rejects a request is available, and has said why",
			operation: operation(func(o *operatorapi.Operation) {
				o.State, o.FinishedAt = "failed", ago(0)
				o.Problem = operatorapi.Problem{
					Message: "the Provisioner refused to change Kyma; operators can find the details in the timeline of the operation",
					Detail:  `there is no release "9.9.9"`, Reason: "err_keb_internal", Component: "provisioner",
				}
			}),
			summary: "The provision operation of instance i failed after 5m00s.",
			advice: []string{
				"The Provisioner rejects the request. The problem says why.",
				"After fixing the cause, run the failed stage again: ebctl operation retry op --reason REASON",
				"Or delete the instance and create it again: ebctl instance delete i",
			},
		},
		"WrongBinding": {
			reason: "without its credentials binding, no Shoot exists whose conditions could be checked",
			operation: operation(func(o *operatorapi.Operation) {
				o.State, o.FinishedAt = "failed", ago(0)
				o.Problem = operatorapi.Problem{
					Message:   `applying the Shoot: Gardener has no such object: credentialsbindings.security.gardener.cloud "nosuch" not found`,
					Component: "k8s client - gardener",
				}
			}),
			summary: "The provision operation of instance i failed after 5m00s.",
			advice: []string{
				"The Gardener project has no matching credentials binding. Set the broker's APP_TARGET_SECRETS to an existing CredentialsBinding of " +
					"the provider, or create the binding; then restart the broker.",
				"After fixing the cause, run the failed stage again: ebctl operation retry op --reason REASON",
				"Or delete the instance and create it again: ebctl instance delete i",
			},
		},
		"Skippable": {
			reason: "a stuck step can be skipped if it is skippable",
			operation: operation(func(o *operatorapi.Operation) {
				o.Skippable, o.Step, o.StepBegan, o.NextRun = true, "Check", ago(3600), ago(-5)
			}),
			summary:   "The provision operation of instance i is waiting.",
			continues: "in 5s",
			advice: []string{
				"No action is needed. " + watch,
				"To continue without the step: ebctl operation skip op --step Check --reason REASON",
				"To cancel the operation: ebctl operation cancel op --reason REASON",
			},
		},
		"NotYetStuck": {
			reason: "a slow step is not stuck yet",
			operation: operation(func(o *operatorapi.Operation) {
				o.Skippable, o.Step, o.StepBegan, o.NextRun = true, "Check", ago(3599), ago(-5)
			}),
			summary:   "The provision operation of instance i is waiting.",
			continues: "in 5s",
			advice:    []string{"No action is needed. " + watch},
		},
		"Canceling": {
			reason:    "a cancellation takes effect between two steps",
			operation: operation(func(o *operatorapi.Operation) { o.State, o.Replica = "canceling", "replica-1" }),
			summary:   "The provision operation of instance i is being canceled and will end before its next step.",
			advice:    []string{"No action is needed. " + watch},
		},
		"Succeeded": {
			reason:    "a success needs no advice",
			operation: operation(func(o *operatorapi.Operation) { o.State, o.FinishedAt = "succeeded", ago(170) }),
			summary:   "The provision operation of instance i succeeded after 2m10s.",
		},
		"Skipped": {
			reason: "skipped steps require manual work",
			operation: operation(func(o *operatorapi.Operation) {
				o.State, o.FinishedAt, o.SkippedSteps = "succeeded", ago(170), []string{"Register"}
			}),
			summary: "The provision operation of instance i succeeded after 2m10s.",
			advice: []string{
				"Some steps were skipped; the timeline shows why. Do the work of these steps manually.",
			},
		},
		"LeftOver": {
			reason: "the broker repeats what a deletion has not completed",
			operation: operation(func(o *operatorapi.Operation) {
				o.Kind, o.State, o.FinishedAt, o.SkippedSteps = "deprovision", "succeeded", ago(170), []string{"EDP_Deregistration"}
			}),
			summary: "The deprovision operation of instance i succeeded after 2m10s.",
			advice: []string{
				"Some steps were skipped or not completed; the timeline shows why. The broker runs them again once a day until nothing is left: " +
					"ebctl instance list --leftovers",
			},
		},
		"FailedCleanup": {
			reason: "a cleanup cannot be retried",
			operation: operation(func(o *operatorapi.Operation) {
				o.Kind, o.State, o.FinishedAt, o.Skippable = "cleanup", "failed", ago(0), true
			}),
			summary: "The cleanup operation of instance i failed after 5m00s.",
			advice:  []string{"After fixing the cause, clean up again: ebctl leftover cleanup i --reason REASON"},
		},
		"FailedBind": {
			reason: "a failed bind cannot be retried",
			operation: operation(func(o *operatorapi.Operation) {
				o.Kind, o.State, o.FinishedAt = "bind", "failed", ago(0)
			}),
			summary: "The bind operation of instance i failed after 5m00s.",
			advice:  []string{"The broker removes the binding. After fixing the cause, let the platform send the request again."},
		},
		"CanceledBind": {
			reason: "a canceled bind cannot be retried",
			operation: operation(func(o *operatorapi.Operation) {
				o.Kind, o.State, o.FinishedAt = "bind", "canceled", ago(0)
			}),
			summary: "The bind operation of instance i was canceled after 5m00s.",
			advice:  []string{"List the operations of the instance: ebctl operation list --instance i"},
		},
		"Misconfigured": {
			reason: "the problem names what to correct, and the log has no more",
			operation: operation(func(o *operatorapi.Operation) {
				o.State, o.FinishedAt = "failed", ago(0)
				o.Problem = operatorapi.Problem{Message: "malformed", Reason: "err_configuration", Component: "k8s client - control plane"}
			}),
			summary: "The provision operation of instance i failed after 5m00s.",
			advice: []string{
				"Correct the configuration that the problem names.",
				"After fixing the cause, run the failed stage again: ebctl operation retry op --reason REASON",
				"Or delete the instance and create it again: ebctl instance delete i",
			},
		},
		"Failed": {
			reason: "a failed creation is retried or deleted; internal errors are in the log",
			operation: operation(func(o *operatorapi.Operation) {
				o.State, o.FinishedAt = "failed", ago(0)
				o.Problem = operatorapi.Problem{Message: "internal error", Reason: "err_keb_internal", Component: "keb"}
			}),
			summary: "The provision operation of instance i failed after 5m00s.",
			advice: []string{
				"Find the cause in the broker's log: search for operation op.",
				"After fixing the cause, run the failed stage again: ebctl operation retry op --reason REASON",
				"Or delete the instance and create it again: ebctl instance delete i",
			},
		},
		"FailedDeletion": {
			reason: "a failed deletion is repeated after a check of the cluster",
			operation: operation(func(o *operatorapi.Operation) {
				o.Kind, o.State, o.FinishedAt = "deprovision", "failed", ago(0)
				o.Problem = operatorapi.Problem{Message: "finalizers are left", Component: "k8s client - cluster"}
			}),
			summary: "The deprovision operation of instance i failed after 5m00s.",
			advice: []string{
				"Check the runtime: ebctl instance kubeconfig i",
				"After fixing the cause, run the failed stage again: ebctl operation retry op --reason REASON",
				"Or delete the instance again: ebctl instance delete i",
			},
		},
		"FailedAtSkippable": {
			reason: "a skippable step need not fail the update",
			operation: operation(func(o *operatorapi.Operation) {
				o.Kind, o.State, o.FinishedAt, o.Step, o.Skippable = "update", "failed", ago(0), "Register", true
			}),
			summary: "The update operation of instance i failed after 5m00s.",
			advice: []string{
				"After fixing the cause, run the failed stage again: ebctl operation retry op --reason REASON",
				"Or run it without the failed step: ebctl operation retry op --skip Register --reason REASON",
				"Or send another update. Until it succeeds, the instance keeps its previous parameters: ebctl instance update i --parameters JSON",
			},
		},
		"FailedSuspension": {
			reason: "a failed suspension is retried or repeated",
			operation: operation(func(o *operatorapi.Operation) {
				o.Kind, o.State, o.FinishedAt = "suspend", "failed", ago(0)
			}),
			summary: "The suspend operation of instance i failed after 5m00s.",
			advice: []string{
				"After fixing the cause, run the failed stage again: ebctl operation retry op --reason REASON",
				"Or suspend the instance again. Until that succeeds, the instance cannot be updated or resumed: ebctl instance suspend i",
			},
		},
		"Retried": {
			reason: "a retried operation is not retried again",
			operation: operation(func(o *operatorapi.Operation) {
				o.State, o.FinishedAt, o.Timeline = "failed", ago(0), []operatorapi.TimelineEntry{{Outcome: "retried"}}
			}),
			summary: "The provision operation of instance i failed after 5m00s.",
			advice:  []string{"The operation was retried. The last entry of the timeline names the new operation."},
		},
		"Superseded": {
			reason: "operations of an instance run in order of acceptance, so a retry would be rejected",
			operation: operation(func(o *operatorapi.Operation) {
				o.State, o.FinishedAt, o.Skippable, o.Step, o.LaterOperationID = "failed", ago(0), true, "Register", "op-2"
			}),
			summary: "The provision operation of instance i failed after 5m00s.",
			advice:  []string{"A later operation of the instance exists, so this one cannot be retried: ebctl operation explain op-2"},
		},
		"CanceledAndSuperseded": {
			reason: "a canceled operation cannot be retried after a later one either",
			operation: operation(func(o *operatorapi.Operation) {
				o.State, o.FinishedAt, o.LaterOperationID = "canceled", ago(240), "op-2"
			}),
			summary: "The provision operation of instance i was canceled after 1m00s.",
			advice: []string{
				"List the operations of the instance: ebctl operation list --instance i",
				"A later operation of the instance exists, so this one cannot be retried: ebctl operation explain op-2",
			},
		},
		"FailedConductor": {
			reason: "the broker rejects interventions in conductors",
			operation: operation(func(o *operatorapi.Operation) {
				o.Kind, o.InstanceID, o.State, o.FinishedAt = "orchestrate", "", "failed", ago(0)
			}),
			summary: "The orchestrate operation failed after 5m00s.",
			advice:  []string{"The operation conducts an orchestration, which you can cancel or retry instead: ebctl orchestration list"},
		},
		"PendingConductor": {
			reason: "a conductor has no instance",
			operation: operation(func(o *operatorapi.Operation) {
				o.Kind, o.InstanceID, o.State = "orchestrate", "", "pending"
			}),
			summary: "The orchestrate operation is queued.",
			why:     "queued behind earlier operations of the instance",
			advice:  []string{"The operation conducts an orchestration, which you can cancel or retry instead: ebctl orchestration list"},
		},
		"CanceledCreation": {
			reason:    "a cancellation removes nothing, so the cluster may exist and cost money",
			operation: operation(func(o *operatorapi.Operation) { o.State, o.StartedAt, o.FinishedAt = "canceled", ago(290), ago(240) }),
			summary:   "The provision operation of instance i was canceled after 1m00s.",
			advice: []string{
				"List the operations of the instance: ebctl operation list --instance i",
				"To retry the operation: ebctl operation retry op --reason REASON",
				"The cancellation removed nothing: the cluster may still exist. To remove it, delete the instance: ebctl instance delete i",
			},
		},
		"CanceledRetryOfCreation": {
			reason:    "the operation has not started, but the one that it retries may have created the cluster",
			operation: operation(func(o *operatorapi.Operation) { o.State, o.PredecessorID, o.FinishedAt = "canceled", "op-0", ago(240) }),
			summary:   "The provision operation of instance i was canceled after 1m00s.",
			advice: []string{
				"List the operations of the instance: ebctl operation list --instance i",
				"To retry the operation: ebctl operation retry op --reason REASON",
				"The cancellation removed nothing: the cluster may still exist. To remove it, delete the instance: ebctl instance delete i",
			},
		},
		"CanceledResumption": {
			reason: "a resumption creates a cluster, and a suspension removes it",
			operation: operation(func(o *operatorapi.Operation) {
				o.Kind, o.State, o.StartedAt, o.FinishedAt = "resume", "canceled", ago(290), ago(240)
			}),
			summary: "The resume operation of instance i was canceled after 1m00s.",
			advice: []string{
				"List the operations of the instance: ebctl operation list --instance i",
				"To retry the operation: ebctl operation retry op --reason REASON",
				"The cancellation removed nothing: the cluster may still exist. To remove it, suspend the instance: ebctl instance suspend i",
			},
		},
		"CanceledAndDeleted": {
			reason: "a later operation decides what happens to the cluster",
			operation: operation(func(o *operatorapi.Operation) {
				o.State, o.StartedAt, o.FinishedAt, o.LaterOperationID = "canceled", ago(290), ago(240), "op-2"
			}),
			summary: "The provision operation of instance i was canceled after 1m00s.",
			advice: []string{
				"List the operations of the instance: ebctl operation list --instance i",
				"A later operation of the instance exists, so this one cannot be retried: ebctl operation explain op-2",
			},
		},
		"Canceled": {
			reason:    "another operation or an operator canceled it before it started, so it has created nothing, but the broker rejects another order with the ID",
			operation: operation(func(o *operatorapi.Operation) { o.State, o.FinishedAt = "canceled", ago(240) }),
			summary:   "The provision operation of instance i was canceled after 1m00s.",
			advice: []string{
				"List the operations of the instance: ebctl operation list --instance i",
				"To retry the operation: ebctl operation retry op --reason REASON",
				"Or delete the instance and create it again: ebctl instance delete i",
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

			want := []any{tc.summary, tc.why, tc.continues, tc.givesUp, tc.advice}
			if diff := cmp.Diff(want, []any{got.Summary, why, got.Continues(), got.GivesUp(), got.Advice}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSince(t *testing.T) {
	t.Parallel()

	entry := func(step, outcome string, attempt, seconds int) operatorapi.TimelineEntry {
		return operatorapi.TimelineEntry{Stage: "check", Step: step, Outcome: outcome, Attempt: attempt, Began: ago(seconds)}
	}

	cases := map[string]struct {
		reason   string
		timeline []operatorapi.TimelineEntry
		want     time.Time
	}{
		"FirstAttempt": {
			reason:   "a first attempt in progress has no entry",
			timeline: []operatorapi.TimelineEntry{entry("Ask", "done", 1, 90)},
			want:     ago(5),
		},
		"Retries": {
			reason: "the first of several attempts counts, regardless of other steps in between",
			timeline: []operatorapi.TimelineEntry{
				entry("Ask", "done", 1, 90), entry("Wait", "waiting", 1, 80),
				entry("Ask", "done", 1, 60),
				{Outcome: "taken over", Began: ago(55)},
				entry("Wait", "retrying", 2, 50),
			},
			want: ago(80),
		},
		"Shared": {
			reason: "an entry of several attempts starts with the first",
			timeline: []operatorapi.TimelineEntry{
				entry("Wait", "waiting", 9, 95),
				{Stage: "check", Step: "Wait", Outcome: "waiting", FirstAttempt: 1, Attempt: 40, Began: ago(80)},
			},
			want: ago(80),
		},
		"Again": {
			reason: "attempts before the last success do not count",
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

func TestElapsedToleratesClockSkew(t *testing.T) {
	t.Parallel()

	future := explain.Of(operation(func(o *operatorapi.Operation) { o.CreatedAt = ago(-10) }), now)
	if got := future.Elapsed(); got != 0 {
		t.Errorf("an operation that was accepted in the future must have an elapsed time of 0, got %s", got)
	}

	if got := explain.Of(operatorapi.Operation{}, now).Elapsed(); got != 0 {
		t.Errorf("an operation that was not read must have an elapsed time of 0, got %s", got)
	}
}

func TestWriteText(t *testing.T) {
	t.Parallel()

	var text strings.Builder

	explanation := explain.Of(operation(func(o *operatorapi.Operation) {
		o.Stage, o.Step, o.Attempt, o.StepBegan = "removed_stage", "Wait", 7, ago(38)
		o.Why, o.NextRun, o.WaitingFor = "the cluster\nis being created", ago(-2), "runtime-1"
		o.SkippedSteps = []string{"One", "Two"}
	}), now)

	err := explaintext.Text{Explanation: explanation}.WriteText(&text)
	if err != nil {
		t.Fatal(err)
	}

	want := `The provision operation of instance i is waiting.

Operation  op, in progress
Stage      removed_stage
Step       Wait, attempt 7
Since      2026-05-01 10:04:22Z (38s)
Reason     the cluster is being created
Continues  in 2s, or earlier on an event
Skipped    One, Two
Accepted   2026-05-01 10:00:00Z (5m00s ago)

Next steps
  - No action is needed. Follow the operation: ebctl operation get op --wait
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
