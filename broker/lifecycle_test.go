package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// gate is a step that waits until the test opens the gate.
type gate struct {
	name  string
	open  chan struct{}
	after func(ctx context.Context, instanceID string) error
}

func (g gate) Name() string { return g.name }

func (g gate) Run(ctx context.Context, operation process.Operation[environment.Data], _ logrus.FieldLogger,
) (process.Operation[environment.Data], time.Duration, error) {
	select {
	case <-g.open:
	case <-ctx.Done():
		return operation, 0, ctx.Err()
	}

	return operation, 0, g.after(ctx, operation.Data.Instance.ID)
}

// passing returns a process with the gate as its only step.
func passing(kind string, gate gate) process.Process[environment.Data] {
	return process.Process[environment.Data]{Kind: kind, Limit: time.Hour, Stages: []process.Stage[environment.Data]{{
		Name: "only", Retry: process.DefaultRetry(), Steps: process.Steps[environment.Data](gate),
	}}}
}

func TestLifecycleWithEngine(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		var engine *process.Engine[environment.Data]

		b := newFixtureOn(t, db, func(options *broker.Options) {
			options.Wake = func() { engine.Wake() }
			options.Clock = clock.RealClock{}
		})

		made := gate{"Make", make(chan struct{}), func(context.Context, string) error { return nil }}
		gone := gate{"Remove", make(chan struct{}), func(ctx context.Context, id string) error {
			return b.delete(ctx, id)
		}}

		config := process.DefaultConfig()
		config.Poll = time.Hour // the engine polls only after a wake-up

		engine, err := process.NewEngine(b.operations, config, clock.RealClock{}, logging.Discard(),
			passing(environment.KindProvision, made), passing(environment.KindDeprovision, gone))
		if err != nil {
			t.Fatal(err)
		}

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)

		go func() { ended <- engine.Run(ctx) }()

		t.Cleanup(func() {
			stop()

			if err := <-ended; err != nil {
				t.Error(err)
			}
		})

		operation := b.want("a creation", b.put(instanceID, order()), 202).text("operation")
		b.want("a repeated request", b.put(instanceID, order()), 202)
		close(made.open)
		b.until("succeeded", operation, 200)
		b.want("C16: available immediately", b.get(instanceID), 200)
		b.want("D12: ready", b.put(instanceID, order()), 200)

		operation = b.want("a deletion", b.remove(instanceID), 202).text("operation")
		b.want("a repeated request", b.remove(instanceID), 202)
		close(gone.open)
		b.until("succeeded", operation, 200)
		b.want("J5: gone", b.remove(instanceID), 410)
	})
}

// until polls last_operation until the response has the given state and status.
func (b *fixture) until(state, operation string, status int) {
	b.Helper()

	deadline := time.Now().Add(2 * time.Minute)

	for {
		got := b.poll(instanceID, operation)
		if got.Status == status && got.text("state") == state {
			return
		}

		if time.Now().After(deadline) {
			b.Fatalf("operation %s: want %d %s, got %d %s", operation, status, state, got.Status, got.Raw)
		}
	}
}
