package broker_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
)

func TestOperationStates(t *testing.T) {
	at := func(stage, step string) func(*process.Record) {
		return func(record *process.Record) { record.Stage, record.Step = stage, step }
	}
	problem := func(message string) func(*process.Record) {
		return func(record *process.Record) { record.Problem = process.Problem{Message: message} }
	}
	description := func(text string) func(*process.Record) {
		return func(record *process.Record) { record.Description = text }
	}

	cases := map[string]struct {
		reason  string
		state   process.State
		changes []func(*process.Record)
		want    map[string]any
	}{
		"Pending":    {"a pending operation is in progress", process.Pending, nil, map[string]any{"state": "in progress", "description": "Waiting to start."}},
		"Running":    {"stage and step are for operators", process.InProgress, []func(*process.Record){at("create_runtime", "Resolve_Target_Secret")}, map[string]any{"state": "in progress", "description": "Creating the cluster"}},
		"Retrying":   {"the current error is shown", process.InProgress, []func(*process.Record){at("s", "S"), problem("the Provisioner does not respond")}, map[string]any{"state": "in progress", "description": "Creating the cluster: delayed, retrying: the Provisioner does not respond"}},
		"Succeeded":  {"the result is shown", process.Succeeded, []func(*process.Record){description("Runtime is ready")}, map[string]any{"state": "succeeded", "description": "Runtime is ready"}},
		"Silent":     {"a description is never empty", process.Succeeded, []func(*process.Record){description("")}, map[string]any{"state": "succeeded", "description": "The operation succeeded."}},
		"Failed":     {"the reason of a failure is shown", process.Failed, []func(*process.Record){at("s", "S"), problem("quota exceeded")}, map[string]any{"state": "failed", "description": "Creating the cluster failed: quota exceeded"}},
		"Long":       {"A26: descriptions have at most 255 characters, of the start and the end", process.Failed, []func(*process.Record){problem(strings.Repeat("é", 300))}, map[string]any{"state": "failed", "description": "Creating the cluster failed: " + strings.Repeat("é", 98) + "…" + strings.Repeat("é", 127)}},
		"Connecting": {"a tenant's own cluster is not created", process.Failed, []func(*process.Record){at("post_actions", "Get_Kubeconfig"), problem("refused")}, map[string]any{"state": "failed", "description": "Connecting to the cluster failed: refused"}},
		"Canceling":  {"a cancellation takes time", process.Canceling, nil, map[string]any{"state": "in progress", "description": "Creating the cluster: being canceled"}},
		"Canceled":   {"canceled is reported as failed", process.Canceled, nil, map[string]any{"state": "failed", "description": "The operation was canceled."}},
	}

	b := newFixture(t)

	for name, test := range cases {
		operation := b.want("an operation", b.put(name, order()), 202).text("operation")
		if test.state != process.Pending {
			b.move(operation, test.state, test.changes...)
		}

		for _, asked := range []string{operation, "", "provision", operation} {
			got := b.want(test.reason, b.poll(name, asked), 200)
			if diff := cmp.Diff(test.want, got.Body); diff != "" {
				b.Errorf("C10: %s\n%s\nbody: -want +got\n%s", name, test.reason, diff)
			}

			_, hinted := got.Header["Retry-After"]
			if hinted != (test.want["state"] == "in progress") {
				b.Errorf("C11: %s: Retry-After is %q", name, got.Header.Get("Retry-After"))
			}
		}
	}
}

// TestProgressForUsers checks the descriptions that users see while an instance is being created. The creation of
// another instance took eight minutes before.
func TestProgressForUsers(t *testing.T) {
	b := newFixture(t)

	past := b.want("an operation", b.put("past", order()), 202).text("operation")

	var began time.Time // start time of both operations
	b.move(past, process.Succeeded, func(record *process.Record) {
		began = record.StartedAt
		record.FinishedAt = began.Add(8 * time.Minute)
	})

	operation := b.want("an operation", b.put(instanceID, order()), 202).text("operation")

	for _, c := range []struct {
		reason, progress string
		age              time.Duration
		want             string
	}{
		{"no past operation is known yet", "Gardener is at 20%: Creating", time.Minute, "Creating the cluster: 20 %"},
		{"the part of eight minutes, instead of Gardener's percentage", "Gardener is at 40%: Creating", 5 * time.Minute, "Creating the cluster: 62 %, about 3 minutes left"},
		{
			"an error of the infrastructure invalidates the estimate", "Gardener is at 40% and retries: <b>buy</b> (ERR_INFRA_RATE_LIMITS_EXCEEDED)", 5 * time.Minute,
			"Creating the cluster: 40 %, delayed: Gardener reports ERR_INFRA_RATE_LIMITS_EXCEEDED: too many calls to the provider: wait",
		},
		{"without a percentage", "starting", 7 * time.Minute, "Creating the cluster: 87 %, about a minute left"},
		{"less than a minute is left", "Gardener is at 90%: Creating", 7*time.Minute + time.Second, "Creating the cluster: 87 %, less than a minute left"},
		{"the operation takes longer than the past one", "Gardener is at 95%: Creating", 9 * time.Minute, "Creating the cluster: 99 %"},
	} {
		b.waiting(operation, c.progress)
		b.clock.SetTime(began.Add(c.age))

		if diff := cmp.Diff(c.want, b.poll(instanceID, operation).text("description")); diff != "" {
			b.Errorf("%s: -want +got\n%s", c.reason, diff)
		}

		if err := b.options.Estimator.Refresh(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func TestRetryAfterGrowsWithTheAge(t *testing.T) {
	b := newFixture(t)
	operation := b.want("an operation", b.put(instanceID, order()), 202).text("operation")
	start := b.clock.Now()

	for age, want := range map[time.Duration]string{
		0: "1", 5 * time.Second: "1", 40 * time.Second: "4", 4 * time.Minute: "24", time.Hour: "30",
	} {
		b.clock.SetTime(start.Add(age))

		if got := b.poll(instanceID, operation).Header.Get("Retry-After"); got != want {
			b.Errorf("%s: want %s, got %q", age, want, got)
		}
	}
}

func TestPolledOperation(t *testing.T) {
	b := newFixture(t)
	own := b.want("an operation", b.put(instanceID, order()), 202).text("operation")
	other := b.want("another instance's", b.put("other", order()), 202).text("operation")

	cases := map[string]struct {
		reason string
		id     string
		query  string
		status int
	}{
		"Own":        {"C9: the ID in the response to the order", instanceID, "?operation=" + own, 200},
		"Encoded":    {"C9: the ID is percent-encoded", instanceID, "?operation=" + strings.ReplaceAll(own, "-", "%2D"), 200},
		"WithIDs":    {"C9: with service_id and plan_id", instanceID, "?operation=" + own + ids, 200},
		"OtherIDs":   {"C9: service_id and plan_id are hints", instanceID, "?service_id=x&plan_id=y", 200},
		"Kind":       {"M5: osb-checker passes the kind", instanceID, "?operation=provision", 200},
		"NoSuchKind": {"M5: the instance has no operation of this kind", instanceID, "?operation=deprovision", 400},
		"Foreign":    {"C6: an operation of another instance", instanceID, "?operation=" + other, 400},
		"Unknown":    {"C6: an unknown operation", instanceID, "?operation=" + identity, 400},
		"Malformed":  {"C6: a text that is not an ID", instanceID, "?operation=" + url.QueryEscape("'; --\x00"), 400},
		"BadQuery":   {"C6: the query must be well-formed", instanceID, "?operation=%zz", 400},
		"NoInstance": {"C7: an unknown instance", "unknown", "", 404},
		"NoOwner":    {"C7: an unknown instance with a known operation", "unknown", "?operation=" + own, 404},
	}

	for name, test := range cases {
		b.want(name+": "+test.reason, b.do(call{method: "GET", path: path(test.id) + "/last_operation" + test.query}), test.status)
	}
}

func TestAFinishedDeletionHasSucceeded(t *testing.T) {
	onEach(t, func(b *fixture) {
		creation := b.provisioned(instanceID)
		deletion := b.want("a deletion", b.remove(instanceID), 202).text("operation")

		b.want("while the deletion runs", b.poll(instanceID, deletion), 200)
		b.forget(instanceID)

		if got := b.want("until the deletion is recorded", b.poll(instanceID, ""), 200); got.text("state") != "in progress" {
			b.Errorf("state: %s", got.Raw)
		}

		b.move(deletion, process.Succeeded)

		for _, asked := range []string{deletion, "", "deprovision"} {
			b.wantState("C8, C10: every poll after the deletion", b.poll(instanceID, asked), "succeeded")
		}

		b.want("C8: a deletion of the deleted instance", b.remove(instanceID), 410)
		b.want("the creation is still reported", b.poll(instanceID, creation), 200)
	})
}
