package operator_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/jobs"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/storage/reports"
)

// TestJobs runs a job as operators do: a dry run, a request that is held, and a confirmed one.
func TestJobs(t *testing.T) {
	var reasons []string

	b := newBench(t, func(options *operator.Options) {
		store, err := reports.Open(t.Context(), options.DB)
		if err != nil {
			t.Fatal(err)
		}

		options.Jobs = jobs.Runner{Reports: store, Clock: clocktesting.NewFakeClock(options.Clock.Now()), Log: logging.Discard(), Jobs: []jobs.Job{{
			Name: "expiry", Description: "Expire.", Items: "instances", Every: time.Hour, Limit: 1, Protection: "They are kept.",
			Due: func(context.Context) (jobs.Due, error) {
				do := func(_ context.Context, reason string) (bool, error) {
					reasons = append(reasons, reason)

					return true, nil
				}

				return jobs.Due{Items: []jobs.Item{{ID: "a", Do: do}, {ID: "b", InstanceID: "protected", Do: do}}}, nil
			},
		}}, Protected: func(_ context.Context, instanceID string) (bool, error) { return instanceID == "protected", nil }}
	})

	times := cmpopts.IgnoreFields(operatorapi.JobRun{}, "StartedAt", "FinishedAt")

	run := func(body string, status int) (got operatorapi.JobRun) {
		t.Helper()

		answer := b.want(body, b.send("operator", "POST", "/jobs/expiry/run", strings.NewReader(body)), status)
		if status == 200 {
			if err := json.Unmarshal([]byte(answer.Raw), &got); err != nil {
				t.Fatal(err)
			}
		}

		return got
	}

	due := operatorapi.JobRun{By: "operator", Due: 2, Left: 2, Held: true, Items: []string{"a", "b"}, Protected: 1, ProtectedItems: []string{"b"}, Protection: "They are kept."}
	if diff := cmp.Diff(due, run(`{"dryRun": true}`, 200), times); diff != "" {
		t.Errorf("a dry run -want +got\n%s", diff)
	}

	for _, body := range []string{`{}`, `{"reason": ""}`, `{"reason": "why", "confirm": -1}`, `{"reason": "why", "force": true}`, `[]`} {
		run(body, 400)
	}

	run(`{"reason": "why"}`, 409)
	run(`{"reason": "why", "confirm": 1}`, 409)

	if len(reasons) > 0 {
		t.Fatalf("rejected requests and a dry run changed %d instances", len(reasons))
	}

	done := operatorapi.JobRun{By: "operator", Due: 2, Changed: 2, Items: []string{"a", "b"}}
	if diff := cmp.Diff(done, run(`{"reason": "why", "confirm": 2}`, 200), times); diff != "" {
		t.Errorf("a confirmed run -want +got\n%s", diff)
	}

	if want := []string{"by operator: why", "by operator: why"}; !cmp.Equal(want, reasons) {
		t.Errorf("the reasons are %q", reasons)
	}

	var list operatorapi.JobList
	if err := json.Unmarshal([]byte(b.want("the list", b.do("viewer", "GET", "/jobs"), 200).Raw), &list); err != nil {
		t.Fatal(err)
	}

	done.Items = nil

	want := operatorapi.JobList{Data: []operatorapi.Job{{Name: "expiry", Description: "Expire.", Items: "instances", Every: "1h0m0s", Limit: 1, LastRun: done}}}
	if diff := cmp.Diff(want, list, times); diff != "" {
		t.Errorf("the list -want +got\n%s", diff)
	}

	if answer := b.want("an unknown job", b.send("operator", "POST", "/jobs/other/run", strings.NewReader(`{"reason": "why"}`)), 404); !strings.Contains(answer.Raw, "no job") {
		t.Error(answer.Raw)
	}
}
