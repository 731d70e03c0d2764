package provisionerwait_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// provisioner always returns the same status, and records the polls.
type provisioner struct {
	status provisionerclient.Operation
	err    error
	polls  []string
}

func (p *provisioner) OperationStatus(_ context.Context, tenant, operationID string) (provisionerclient.Operation, error) {
	p.polls = append(p.polls, tenant+"/"+operationID)

	return p.status, p.err
}

const pace = 7 * time.Second

func waiter(p *provisioner) provisionerwait.Waiter {
	return provisionerwait.Waiter{
		Operations: p, Limit: time.Hour, Pace: func(elapsed time.Duration) time.Duration { return pace + elapsed },
	}
}

func operation() process.Operation[environment.Data] {
	return process.NewOperation(
		process.Record{ID: "op-1", WaitingFor: provisionerwait.Event("creation")},
		environment.Data{Instance: environment.Instance{GlobalAccountID: "tenant"}, ProvisionerOperationID: "creation"},
		time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
}

func TestAwait(t *testing.T) {
	const reports = " reports an error; operators can find the details in the timeline of the operation"

	failed := func(message string, last provisionerclient.LastError) provisionerclient.Operation {
		return provisionerclient.Operation{State: provisionerclient.StateFailed, Message: message, LastError: last}
	}

	cases := map[string]struct {
		reason   string
		status   provisionerclient.Operation
		err      error
		limit    time.Duration
		wantWait time.Duration
		want     *failure.Error
	}{
		"succeeded":   {reason: "the step is done", status: provisionerclient.Operation{State: provisionerclient.StateSucceeded}, limit: time.Hour},
		"pending":     {reason: "it has not started yet", status: provisionerclient.Operation{State: provisionerclient.StatePending}, limit: time.Hour, wantWait: pace},
		"in progress": {reason: "it is still running", status: provisionerclient.Operation{State: provisionerclient.StateInProgress}, limit: time.Hour, wantWait: pace},
		"new state":   {reason: "a state that only a later version knows counts as unfinished", status: provisionerclient.Operation{State: "Dreaming"}, limit: time.Hour, wantWait: pace},
		"failed": {
			reason: "the reason, component and text are passed on, the text to operators", limit: time.Hour,
			status: failed("all", provisionerclient.LastError{Message: "no quota", Reason: "ERR_QUOTA", Component: "gardener"}),
			want:   &failure.Error{Kind: failure.Permanent, Text: "Gardener" + reports, Detail: "no quota", Reason: "ERR_QUOTA", Component: "gardener"},
		},
		"failed with a known code": {
			reason: "users read what they can do", limit: time.Hour,
			status: failed("all", provisionerclient.LastError{Message: "no capacity", Reason: "ERR_INFRA_RESOURCES_DEPLETED", Component: "gardener"}),
			want: &failure.Error{
				Kind: failure.Permanent, Detail: "no capacity", Reason: "ERR_INFRA_RESOURCES_DEPLETED", Component: "gardener",
				Text: "Gardener reports ERR_INFRA_RESOURCES_DEPLETED: the provider has no capacity left: choose another machine type or other zones, or retry later",
			},
		},
		"failed with a message": {
			reason: "Kyma Provisioner may return only a message", limit: time.Hour, status: failed("timeout", provisionerclient.LastError{}),
			want: &failure.Error{Kind: failure.Permanent, Text: "the Provisioner" + reports, Detail: "timeout", Component: "provisioner"},
		},
		"failed without a message": {
			reason: "the text is complete even without a message", limit: time.Hour, status: failed("", provisionerclient.LastError{}),
			want: &failure.Error{Kind: failure.Permanent, Text: "the Provisioner" + reports, Component: "provisioner"},
		},
		"no response": {
			reason: "errors are left to the retry policy", limit: time.Hour, err: failure.New(failure.Transient, "away"),
			want: &failure.Error{Kind: failure.Transient, Text: "away"},
		},
		"too long": {
			reason: "the wait is limited", status: provisionerclient.Operation{State: provisionerclient.StateInProgress, Message: "at 90%"},
			want: &failure.Error{
				Kind: failure.Permanent, Reason: failure.ReasonTimeout,
				Text: "not done within 0s", Detail: "the Provisioner is working on it: at 90%",
			},
		},
		"done at the last moment": {
			reason: "success overrides the limit", status: provisionerclient.Operation{State: provisionerclient.StateSucceeded},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := &provisioner{status: c.status, err: c.err}
			waiting := waiter(p)
			waiting.Limit = c.limit

			for range 2 {
				got, wait, err := waiting.Await(t.Context(), operation(), nil)
				if wait != c.wantWait || (err == nil) != (c.want == nil) {
					t.Fatalf("%s: runs again after %s, %v", c.reason, wait, err)
				}

				if err != nil {
					if diff := cmp.Diff(c.want, failure.Of(err)); diff != "" {
						t.Errorf("%s: -want +got:\n%s", c.reason, diff)
					}
				}

				if done := err == nil && wait == 0; done != (got.WaitingFor == "") {
					t.Errorf("%s: done is %t, waiting for %q", c.reason, done, got.WaitingFor)
				}
			}

			if diff := cmp.Diff([]string{"tenant/creation", "tenant/creation"}, p.polls); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

// busyPoller returns a Poller that is limited to one request per second and has just sent one. It also returns the recorded
// requests.
func busyPoller(t *testing.T) (*provisionerwait.Poller, *statuses) {
	t.Helper()

	requests := &statuses{}
	poller := provisionerwait.NewPoller(requests, 1)

	if _, wait, err := poller.Poll(t.Context(), "another tenant", "operation"); wait != 0 || err != nil {
		t.Fatalf("the first poll waits for %s, %v", wait, err)
	}

	return poller, requests
}

func TestAwaitDoesNotPollBeforeItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiting := waiter(&provisioner{err: failure.New(failure.Permanent, "the operation polled on its own")})

		poller, requests := busyPoller(t)
		waiting.Poller, waiting.FeedAlive = poller, func() bool { return false }

		_, wait, err := waiting.Await(t.Context(), operation(), nil)
		if err != nil || wait != time.Second || len(requests.sent()) != 1 {
			t.Fatalf("runs again after %s, %v; %d requests", wait, err, len(requests.sent()))
		}

		time.Sleep(wait)

		if _, wait, err = waiting.Await(t.Context(), operation(), nil); err != nil || wait != pace {
			t.Errorf("runs again after %s, %v", wait, err)
		}

		// The request of another poll includes this operation too, because its next poll is expected now.
		time.Sleep(pace)

		if _, _, err := poller.Poll(t.Context(), "tenant", "another"); err != nil {
			t.Fatal(err)
		}

		want := [][]string{{"operation"}, {"creation"}, {"another", "creation"}}
		if diff := cmp.Diff(want, requests.sent()); diff != "" {
			t.Errorf("requests: -want +got:\n%s", diff)
		}
	})
}

// TestManyOperationsPollMoreSlowly checks that the polls of a replica leave room for other work of its engine.
func TestManyOperationsPollMoreSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiting := waiter(&provisioner{})
		waiting.Poller, waiting.FeedAlive = provisionerwait.NewPoller(&statuses{}, 50), func() bool { return false }

		for _, c := range []struct {
			expected int
			want     time.Duration
		}{{0, pace}, {1_750, pace}, {10_000, 40 * time.Second}} {
			for _, id := range operations(c.expected) {
				waiting.Poller.Expect("another tenant", id, time.Minute)
			}

			if _, wait, err := waiting.Await(t.Context(), operation(), nil); err != nil || wait != c.want {
				t.Errorf("with %d others: runs again after %s, %v, want %s", c.expected, wait, err, c.want)
			}

			time.Sleep(spacing)
		}
	})
}

func TestAwaitWithAFeedPollsOnItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provisioner{status: provisionerclient.Operation{State: provisionerclient.StateSucceeded}}
		waiting := waiter(p)

		poller, requests := busyPoller(t)
		waiting.Poller, waiting.FeedAlive = poller, func() bool { return true }

		got, wait, err := waiting.Await(t.Context(), operation(), nil)
		if err != nil || wait != 0 || got.WaitingFor != "" || len(p.polls) != 1 || len(requests.sent()) != 1 {
			t.Errorf("runs again after %s, %v; %d polls of its own, %d others", wait, err, len(p.polls), len(requests.sent()))
		}
	})
}

func TestWaitForATurnEndsAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiting := waiter(&provisioner{})
		waiting.Poller, _ = busyPoller(t)
		waiting.FeedAlive, waiting.Limit = func() bool { return false }, 0

		if _, _, err := waiting.Await(t.Context(), operation(), nil); !failure.Is(err, failure.Permanent) || failure.Of(err).Reason != failure.ReasonTimeout {
			t.Errorf("got %v, want a timeout", err)
		}
	})
}
