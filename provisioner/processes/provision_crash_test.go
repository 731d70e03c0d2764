package processes

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// runCreationToEnd runs a creation as the engine does: after a transient error it repeats the stage with the stored data.
func runCreationToEnd(t *testing.T, g *creationFixture) {
	t.Helper()

	const maxTries = 10

	current := creationData()

	for _, stage := range g.process().Stages {
		for try := 1; ; try++ {
			if try > maxTries {
				t.Fatalf("stage %s does not end: %v", stage.Name, g.calls)
			}

			op, wait, err := run(t, stage.Steps[0].Step.Run, newCreation(stored(t, current)))
			if err != nil && !failure.Is(err, failure.Transient) {
				t.Fatalf("stage %s: %v", stage.Name, err)
			}

			if err == nil && wait == 0 {
				current = op.Data

				break
			}
		}
	}
}

// TestNoFaultCreatesASecondCluster injects a fault into each call that a creation makes, one at a time: either the call or its
// response is lost. After every fault there must be exactly one cluster.
func TestNoFaultCreatesASecondCluster(t *testing.T) {
	newFixture := func() *creationFixture {
		g, reads := newGarden(), 0
		g.onGet = func(s *gardencorev1beta1.Shoot) {
			switch reads++; reads {
			case 1:
			case 2:
				s.Spec.DNS = &gardencorev1beta1.DNS{Domain: new("c-first.example.com")}
			case 3:
				lastOperation(gardencorev1beta1.LastOperationStateFailed, gardencorev1beta1.ErrorInfraRateLimitsExceeded)(s)
			default:
				s.Spec.DNS = &gardencorev1beta1.DNS{Domain: new("c-first.example.com")}

				lastOperation(gardencorev1beta1.LastOperationStateSucceeded)(s)
			}
		}

		return g
	}

	whole := newFixture()
	runCreationToEnd(t, whole)

	for failing := range len(whole.calls) + 1 {
		for _, unsent := range []bool{true, false} {
			g := newFixture()
			g.failing, g.unsent = failing, unsent

			runCreationToEnd(t, g)

			if g.applied != 1 || len(g.shoots) != 1 {
				t.Errorf("call %d of %v fails, unsent %t: %v: created %d clusters, %d exist",
					failing, whole.calls, unsent, g.calls, g.applied, len(g.shoots))
			}
		}
	}
}

// lostLeaseStore is a store of operations in which another replica holds the lease while lost is true.
type lostLeaseStore struct {
	*operations.Store

	lost atomic.Bool
}

func (l *lostLeaseStore) Save(ctx context.Context, progress process.Progress) (process.State, error) {
	if l.lost.Load() {
		return "", process.ErrLeaseLost
	}

	return l.Store.Save(ctx, progress)
}

func TestReplicaThatLostItsLeaseCreatesNoCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := storagetest.SQLite(t)

		inner, err := operations.Open(t.Context(), db, storagetest.Keys(t))
		if err != nil {
			t.Fatal(err)
		}

		store, g := &lostLeaseStore{Store: inner}, newGarden()
		store.lost.Store(true)

		engine, err := process.NewEngine(store, process.DefaultConfig(), clock.RealClock{}, logging.Discard(), g.process())
		if err != nil {
			t.Fatal(err)
		}

		payload, err := json.Marshal(creationData())
		if err != nil {
			t.Fatal(err)
		}

		if err := db.InTx(t.Context(), func(tx storage.Tx) error {
			err := inner.Accept(t.Context(), tx, process.New{
				ID: "op-1", Kind: operation.KindProvisionNoInstall, InstanceID: runtimeID, Payload: payload, At: time.Now(),
			})

			return err
		}); err != nil {
			t.Fatal(err)
		}

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)

		go func() { ended <- engine.Run(ctx) }()

		time.Sleep(time.Minute) // fake time, in which the engine claims the operation many times
		synctest.Wait()

		if len(g.calls) != 0 {
			t.Errorf("Gardener was called before the intent was stored: %v", g.calls)
		}

		store.lost.Store(false)
		time.Sleep(time.Minute) // fake time
		stop()

		if err := <-ended; err != nil {
			t.Error(err)
		}

		if g.applied != 1 {
			t.Errorf("created %d clusters after the intent was stored: %v", g.applied, g.calls)
		}
	})
}
