package process_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// unavailableStore simulates an outage of the database. It counts all calls of Due, and fails them while unavailable is set.
type unavailableStore struct {
	process.Store

	unavailable atomic.Bool
	calls       atomic.Int64
}

func (s *unavailableStore) Due(ctx context.Context, kinds []string, now time.Time) ([]process.Due, error) {
	s.calls.Add(1)

	if s.unavailable.Load() {
		return nil, errors.New("the database is unavailable")
	}

	return s.Store.Due(ctx, kinds, now)
}

func TestBackoffDuringAnOutage(t *testing.T) {
	inBubble(t, func(b *fixture) {
		store := &unavailableStore{Store: b.store}
		store.unavailable.Store(true)

		engine := b.engine(store, stage("only", succeeding("A")))
		b.start(engine)

		for range 600 { // a minute of continuous requests
			engine.Wake()
			time.Sleep(100 * time.Millisecond)
		}

		// The pauses grow from 0.1 s to between 2.5 s and 5 s. There are about six pauses while they grow, and about twenty
		// afterwards.
		if calls := store.calls.Load(); calls < 10 || calls > 40 {
			b.Errorf("in an outage of a minute the store was called %d times, want 10 to 40", calls)
		}

		b.accept("op", "instance")
		store.unavailable.Store(false)

		back := time.Now()

		b.await("op")

		if took := time.Since(back); took > 6*time.Second {
			b.Errorf("the recovered store was noticed after %s, want 5s at most", took)
		}
	})
}

// unavailableAtStart is a store whose first three reads of the unfinished kinds fail.
type unavailableAtStart struct {
	process.Store

	tries atomic.Int64
}

func (s *unavailableAtStart) UnfinishedKinds(ctx context.Context) ([]string, error) {
	if s.tries.Add(1) < 4 {
		return nil, errors.New("the database system is shutting down")
	}

	return s.Store.UnfinishedKinds(ctx)
}

func TestStartDuringAnOutage(t *testing.T) {
	inBubble(t, func(b *fixture) {
		b.accept("op", "instance")
		b.start(b.engine(&unavailableAtStart{Store: b.store}, stage("only", succeeding("A"))))

		if record := b.await("op"); record.State != process.Succeeded {
			b.Errorf("the operation ended as %s: %+v", record.State, record.Problem)
		}
	})
}

// TestFullDatabaseLosesNothing checks that all operations succeed after a full disk has space again. It uses only SQLite,
// because the tests share one PostgreSQL server, whose disk cannot be filled for a single test.
func TestFullDatabaseLosesNothing(t *testing.T) {
	inBubbleOnSQLite(t, func(b *fixture) {
		const count = 20

		for i := range count {
			b.accept(fmt.Sprintf("op-%d", i), fmt.Sprintf("instance-%d", i))
		}

		storagetest.Fill(b, b.db)

		// The step adds so much data to each operation that the disk fills up.
		grows := &step{name: "Grows", work: func(_ context.Context, operation operation) (operation, time.Duration, error) {
			for range 500 {
				operation.Data.Trace = append(operation.Data.Trace, "data that needs disk space")
			}

			return operation, 0, nil
		}}

		b.start(b.engine(b.store, stage("first", succeeding("A")), stage("second", grows), stage("third", succeeding("B"))))
		time.Sleep(time.Minute)

		ended := 0
		for i := range count {
			if b.get(fmt.Sprintf("op-%d", i)).State.Terminal() {
				ended++
			}
		}

		if ended == count {
			b.Error("the disk did not fill up: the test proves nothing")
		}

		storagetest.Empty(b, b.db)

		for i := range count {
			if record := b.await(fmt.Sprintf("op-%d", i)); record.State != process.Succeeded {
				b.Errorf("%s ended as %s: %+v", record.ID, record.State, record.Problem)
			}
		}
	})
}

// TestWorkResumesWhenPostgresIsBack cuts and then freezes the connection to PostgreSQL while operations run. All operations must
// succeed once the connection is back. The test runs in real time, because network connections do not work in a synctest bubble.
func TestWorkResumesWhenPostgresIsBack(t *testing.T) {
	config, line := postgrestest.Through(t, storagetest.Postgres(t))
	db := storagetest.Open(t, config)

	store, err := operations.Open(t.Context(), db, storagetest.Keys(t))
	if err != nil {
		t.Fatal(err)
	}

	const count = 20

	b := &fixture{T: t, db: db, store: store}
	for i := range count {
		b.accept(fmt.Sprintf("op-%d", i), fmt.Sprintf("instance-%d", i))
	}

	reached := make(chan struct{}, count)
	troubled := &step{name: "Troubled", work: func(_ context.Context, operation operation) (operation, time.Duration, error) {
		select {
		case reached <- struct{}{}:
		default:
		}

		return operation, 0, nil
	}}

	limits := process.DefaultConfig()
	limits.Workers, limits.Lease = 4, 2*time.Second

	engine, err := process.NewEngine(store, limits, clock.RealClock{}, logging.Discard(), process.Process[data]{
		Kind: "test", Limit: limit, Stages: []process.Stage[data]{stage("first", succeeding("A")), stage("second", troubled), stage("third", succeeding("B"))},
	})
	if err != nil {
		t.Fatal(err)
	}

	b.start(engine)

	<-reached
	line.Cut()

	if _, err := store.Get(t.Context(), db.Reader(), "op-0"); err == nil {
		t.Error("the connection was not cut: the test proves nothing")
	}

	line.Mend()

	<-reached
	line.Freeze()

	silent, cancel := context.WithTimeout(t.Context(), 3*time.Second) // longer than the lease
	defer cancel()

	if err := db.Ping(silent); err == nil {
		t.Error("the connection was not frozen: the test proves nothing")
	}

	line.Thaw()

	for i := range count {
		if record := b.await(fmt.Sprintf("op-%d", i)); record.State != process.Succeeded {
			t.Errorf("%s ended as %s: %+v", record.ID, record.State, record.Problem)
		}
	}
}
