package provisionerwait_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// provisioner answers always the same and counts who asks.
type provisioner struct {
	status provisionerclient.Operation
	err    error
	asked  []string
}

func (p *provisioner) OperationStatus(_ context.Context, tenant, operationID string) (provisionerclient.Operation, error) {
	p.asked = append(p.asked, tenant+"/"+operationID)

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
		"pending":     {reason: "its turn has not come", status: provisionerclient.Operation{State: provisionerclient.StatePending}, limit: time.Hour, wantWait: pace},
		"in progress": {reason: "it takes its time", status: provisionerclient.Operation{State: provisionerclient.StateInProgress}, limit: time.Hour, wantWait: pace},
		"new state":   {reason: "a state of a later version is waited out", status: provisionerclient.Operation{State: "Dreaming"}, limit: time.Hour, wantWait: pace},
		"failed": {
			reason: "reason, component and text reach the user", limit: time.Hour,
			status: failed("all", provisionerclient.LastError{Message: "no quota", Reason: "ERR_QUOTA", Component: "gardener"}),
			want:   &failure.Error{Kind: failure.Permanent, Text: "the Provisioner failed: no quota", Reason: "ERR_QUOTA", Component: "gardener"},
		},
		"failed with a message": {
			reason: "a former Provisioner may tell only this much", limit: time.Hour, status: failed("timeout", provisionerclient.LastError{}),
			want: &failure.Error{Kind: failure.Permanent, Text: "the Provisioner failed: timeout", Component: "provisioner"},
		},
		"failed in silence": {
			reason: "the text is never half a sentence", limit: time.Hour, status: failed("", provisionerclient.LastError{}),
			want: &failure.Error{Kind: failure.Permanent, Text: "the Provisioner failed: it does not say why", Component: "provisioner"},
		},
		"no answer": {
			reason: "an error is the retry policy's business", limit: time.Hour, err: failure.New(failure.Transient, "away"),
			want: &failure.Error{Kind: failure.Transient, Text: "away"},
		},
		"too long": {
			reason: "nobody waits for ever", status: provisionerclient.Operation{State: provisionerclient.StateInProgress, Message: "at 90%"},
			want: &failure.Error{
				Kind: failure.Permanent, Reason: failure.ReasonTimeout,
				Text: "the Provisioner works on it: at 90%: not done within 0s",
			},
		},
		"done at the last moment": {
			reason: "what is done has not taken too long", status: provisionerclient.Operation{State: provisionerclient.StateSucceeded},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := &provisioner{status: c.status, err: c.err}
			waiting := waiter(p)
			waiting.Limit = c.limit

			for range 2 {
				got, wait, err := waiting.Await(t.Context(), operation())
				if wait != c.wantWait || (err == nil) != (c.want == nil) {
					t.Fatalf("%s: comes back after %s, %v", c.reason, wait, err)
				}

				if err != nil {
					if diff := cmp.Diff(c.want, failure.Of(err)); diff != "" {
						t.Errorf("%s: -want +got:\n%s", c.reason, diff)
					}
				}

				if done := err == nil && wait == 0; done != (got.WaitingFor == "") {
					t.Errorf("%s: done is %t, and it waits for %q", c.reason, done, got.WaitingFor)
				}
			}

			if diff := cmp.Diff([]string{"tenant/creation", "tenant/creation"}, p.asked); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestOneThatHasToWaitForItsTurnDoesNotAsk(t *testing.T) {
	p := &provisioner{status: provisionerclient.Operation{State: provisionerclient.StateSucceeded}}
	waiting := waiter(p)

	var turn time.Duration

	waiting.Turn = func(operationID string) time.Duration {
		if operationID != "op-1" {
			t.Errorf("the turn is that of %s", operationID)
		}

		return turn
	}

	for _, turn = range []time.Duration{3 * time.Second, 0} {
		got, wait, err := waiting.Await(t.Context(), operation())
		if err != nil {
			t.Fatal(err)
		}

		if asked, done := len(p.asked) > 0, got.WaitingFor == ""; wait != turn || asked != (turn == 0) || done != asked {
			t.Errorf("with a turn in %s it asks: %t, is done: %t, and comes back after %s", turn, asked, done, wait)
		}
	}
}

func TestOneThatMayNotAskFailsInTheEnd(t *testing.T) {
	waiting := waiter(&provisioner{})
	waiting.Turn, waiting.Limit = func(string) time.Duration { return time.Second }, 0

	if _, _, err := waiting.Await(t.Context(), operation()); !failure.Is(err, failure.Permanent) || failure.Of(err).Reason != failure.ReasonTimeout {
		t.Errorf("got %v, want that it took too long", err)
	}
}
