package processes

import (
	"cmp"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	shootName = "c-first"
	runtimeID = "runtime-1"
	poll      = 20 * time.Second
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var errLost = failure.New(failure.Transient, "the response was lost")

func run(t *testing.T, step process.RunFunc[operation.Data], op operation.Operation) (operation.Operation, time.Duration, error) {
	t.Helper()

	return step(t.Context(), op, logging.Discard())
}

// faults records the calls to a fixture and injects faults into them.
type faults struct {
	calls []string
	// failing is the number of the failing call, counted from 1, or 0 if all calls succeed. If unsent is true, the
	// failing call has no effect. Otherwise it takes effect, and only its response is lost.
	failing int
	unsent  bool
	// err fails every call. errs fails the calls with the given names.
	err  error
	errs map[string]error
}

// call records a call and runs its effect, unless a fault prevents it.
func (f *faults) call(name string, effect func() error) error {
	f.calls = append(f.calls, name)

	if err := cmp.Or(f.err, f.errs[name]); err != nil {
		return err
	}

	if len(f.calls) != f.failing {
		return effect()
	}

	if !f.unsent {
		_ = effect() // the response is lost
	}

	return errLost
}

// succeed is the effect of calls that change nothing.
func succeed() error { return nil }
