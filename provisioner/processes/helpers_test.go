package processes

import (
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
