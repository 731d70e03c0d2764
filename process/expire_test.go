package process_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
)

// TestPendingOperationsExpire checks that pending operations fail after the limit, even if the replica has no workers and the
// operations do not fit into one batch.
func TestPendingOperationsExpire(t *testing.T) {
	inBubble(t, func(b *fixture) {
		const late = 250

		config := process.DefaultConfig()
		config.Workers, config.PendingLimit, config.Component = 0, 10*time.Minute, service

		engine, err := process.NewEngine(b.store, config, clock.RealClock{}, logging.Discard(),
			process.Process[data]{Kind: "test", Limit: limit, Stages: []process.Stage[data]{stage("only", succeeding("A"))}})
		if err != nil {
			b.Fatal(err)
		}

		b.start(engine)

		for i := range late {
			b.accept(fmt.Sprintf("late-%d", i), fmt.Sprintf("instance-%d", i))
		}

		time.Sleep(config.PendingLimit - time.Minute)
		b.accept("young", "instance-0")

		if state := b.get("late-0").State; state != process.Pending {
			b.Errorf("before the limit the operation is %s", state)
		}

		time.Sleep(3 * time.Minute)

		want := process.Problem{
			Message: "the operation did not start within 10m0s", Reason: failure.ReasonTimeout, Component: service,
		}

		for i := range late {
			record := b.get(fmt.Sprintf("late-%d", i))
			if diff := cmp.Diff(want, record.Problem); record.State != process.Failed || diff != "" {
				b.Fatalf("%s is %s, -want +got:\n%s", record.ID, record.State, diff)
			}
		}

		if state := b.get("young").State; state != process.Pending {
			b.Errorf("an operation that was accepted later is %s", state)
		}
	})
}
