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

var errLost = failure.New(failure.Transient, "the answer was lost")

// run runs a step once.
func run(t *testing.T, step process.RunFunc[operation.Data], op operation.Operation) (operation.Operation, time.Duration, error) {
	t.Helper()

	return step(t.Context(), op, logging.Discard())
}

// faults records the calls to a fixture and lets some of them fail.
type faults struct {
	calls []string
	// broken is the number of the call that fails, counted from 1: its answer is lost or, if unsent, the call itself.
	broken int
	unsent bool
	// err fails all calls, errs the calls of a name.
	err  error
	errs map[string]error
}

// call carries out the effect of a call, unless the call fails.
func (f *faults) call(name string, effect func() error) error {
	f.calls = append(f.calls, name)

	if err := cmp.Or(f.err, f.errs[name]); err != nil {
		return err
	}

	if len(f.calls) != f.broken {
		return effect()
	}

	if !f.unsent {
		_ = effect() // the answer is lost
	}

	return errLost
}

// succeed is a call without an effect.
func succeed() error { return nil }
