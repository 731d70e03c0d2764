package provisioning

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

// fakePool is an account pool that returns the error, or else an account.
type fakePool struct {
	err   error
	calls int
}

func (p *fakePool) Assign(context.Context, environment.Instance) (string, error) {
	p.calls++

	return "pooled", p.err
}

func TestAccountOfThePool(t *testing.T) {
	pool := &fakePool{}

	operation := runStage(t, newOperation(), resolveTargetSecret(pool), resolveTargetSecret(pool))
	if operation.Data.TargetSecret != "pooled" || pool.calls != 1 {
		t.Errorf("the step chose %q and asked %d times, want one time", operation.Data.TargetSecret, pool.calls)
	}
}

// TestWaitForAFreeAccount waits for an account of the pool.
//
//faults:row account-pool.md#gardener no account is free
func TestWaitForAFreeAccount(t *testing.T) {
	pool := &fakePool{err: failure.New(failure.Waiting, "no account is free (hyperscalerType aws)")}

	operation, wait, err := resolveTargetSecret(pool).Run(t.Context(), newOperation(), logging.Discard())
	if wait != 10*time.Second || err != nil || operation.Data.TargetSecret != "" {
		t.Errorf("without a free account, the step runs again after %s with %q, %v", wait, operation.Data.TargetSecret, err)
	}

	faulttable.Shows(t, "account-pool.md#gardener", "no account is free", stepstest.Shown(operation, err))

	for _, c := range []struct {
		elapsed time.Duration
		want    failure.Kind
	}{{10*time.Minute - 1, ""}, {10 * time.Minute, failure.Quota}} {
		_, wait, err := awaitAccount(newOperation(), c.elapsed, pool.err)
		if c.want == "" && (err != nil || wait == 0) || c.want != "" && failure.KindOf(err) != c.want {
			t.Errorf("after %s: runs again after %s, %v", c.elapsed, wait, err)
		}

		if err != nil && !strings.Contains(failure.Of(err).Text, "hyperscalerType aws) after 10m0s: an operator must add accounts") {
			t.Errorf("the text does not name the quota: %v", err)
		}
	}
}

func TestFailureOfThePool(t *testing.T) {
	pool := &fakePool{err: failure.New(failure.Transient, "Gardener is unavailable")}

	if _, _, err := resolveTargetSecret(pool).Run(t.Context(), newOperation(), logging.Discard()); !failure.Is(err, failure.Transient) {
		t.Errorf("got %v, want the error of the pool", err)
	}
}
