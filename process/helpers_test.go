package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// limit is the Process.Limit of the test processes.
const limit = 10 * time.Minute

// service is the Config.Component of the test engines.
const service = "office"

// data is the data of the operations.
type data struct {
	Trace []string `json:"trace"`
	// Input is not stored, so it is lost when a run ends.
	Input string `json:"-"`
}

type operation = process.Operation[data]

type work func(ctx context.Context, operation operation) (operation, time.Duration, error)

// step is a step that calls a function and counts its runs.
type step struct {
	name string
	work work

	mutex sync.Mutex
	count int
}

func (s *step) Name() string { return s.name }

func (s *step) Run(ctx context.Context, operation operation, _ logrus.FieldLogger) (operation, time.Duration, error) {
	s.mutex.Lock()
	s.count++
	s.mutex.Unlock()

	return s.work(ctx, operation)
}

func (s *step) runs() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	return s.count
}

// succeeding is a step that succeeds and appends its name to the data.
func succeeding(name string) *step {
	return &step{name: name, work: func(_ context.Context, operation operation) (operation, time.Duration, error) {
		operation.Data.Trace = append(operation.Data.Trace, name)

		return operation, 0, nil
	}}
}

// scripted is a step that calls the function with the number of the run, counted from 1.
func scripted(name string, outcome func(run int) (time.Duration, error)) *step {
	s := &step{name: name}
	s.work = func(_ context.Context, operation operation) (operation, time.Duration, error) {
		wait, err := outcome(s.runs())

		return operation, wait, err
	}

	return s
}

// stage returns a stage with short retries, which give up after a minute.
func stage(name string, steps ...process.Step[data]) process.Stage[data] {
	return process.Stage[data]{
		Name:  name,
		Steps: process.Steps(steps...),
		Retry: process.RetryPolicy{First: time.Second, Cap: 4 * time.Second, Factor: 2, Window: time.Minute},
	}
}

// fixture is a store on a new database, in fake time.
type fixture struct {
	*testing.T

	db    *storage.DB
	store *operations.Store
	// log receives the log of the engines.
	log logrus.FieldLogger
}

// inBubble runs the test on both databases, each time in a synctest bubble with fake time. Time stands still while a goroutine
// waits for the response of PostgreSQL, so a statement takes no time, as on SQLite. With the flag -short, which make test-unit
// sets, the test runs on SQLite only.
func inBubble(t *testing.T, test func(b *fixture)) {
	t.Helper()

	t.Run("sqlite", func(t *testing.T) { inBubbleOnSQLite(t, test) })
	t.Run("postgres", func(t *testing.T) {
		if testing.Short() {
			t.Skip("make test runs it")
		}

		config := storagetest.Postgres(t) // in real time

		synctest.Test(t, func(t *testing.T) { test(newFixture(t, storagetest.Open(t, config))) })
	})
}

// inBubbleOnSQLite runs the test on SQLite only, in a synctest bubble with fake time. Callers explain why they exclude
// PostgreSQL.
func inBubbleOnSQLite(t *testing.T, test func(b *fixture)) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) { test(newFixture(t, storagetest.SQLite(t))) })
}

// newFixture opens the store in an empty database.
func newFixture(t *testing.T, db *storage.DB) *fixture {
	t.Helper()

	store, err := operations.Open(t.Context(), db, storagetest.Keys(t))
	if err != nil {
		t.Fatal(err)
	}

	return &fixture{T: t, db: db, store: store, log: logging.Discard()}
}

// engine returns an engine that uses the store. Its only process has the kind "test".
func (b *fixture) engine(store process.Store, stages ...process.Stage[data]) *process.Engine[data] {
	b.Helper()

	return b.engineWith(process.DefaultConfig(), store, stages...)
}

// engineWith is like engine, with another configuration than the default.
func (b *fixture) engineWith(config process.Config, store process.Store, stages ...process.Stage[data]) *process.Engine[data] {
	b.Helper()

	config.Component = service

	engine, err := process.NewEngine(store, config, clock.RealClock{}, b.log,
		process.Process[data]{Kind: "test", Limit: limit, Stages: stages})
	if err != nil {
		b.Fatal(err)
	}

	return engine
}

func (b *fixture) start(engine *process.Engine[data]) (stop func()) {
	b.Helper()

	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})

	go func() {
		defer close(done)

		if err := engine.Run(ctx); err != nil {
			b.Error(err)
		}
	}()

	stop = func() {
		cancel()
		<-done
	}
	b.Cleanup(stop)

	return stop
}

func (b *fixture) accept(id, instance string) {
	b.Helper()
	b.acceptNew(process.New{ID: id, Kind: "test", InstanceID: instance})
}

// acceptNew accepts the operation at the current time, with an empty payload unless the operation has one.
func (b *fixture) acceptNew(operation process.New) {
	b.Helper()

	operation.At = time.Now()
	if operation.Payload == nil {
		operation.Payload = json.RawMessage(`{}`)
	}

	b.inTx(func(tx storage.Tx) error {
		err := b.store.Accept(b.Context(), tx, operation)

		return err
	})
}

func (b *fixture) inTx(work func(tx storage.Tx) error) {
	b.Helper()

	if err := b.db.InTx(b.Context(), work); err != nil {
		b.Fatal(err)
	}
}

func (b *fixture) cancel(instance string) {
	b.Helper()

	b.inTx(func(tx storage.Tx) error {
		_, err := b.store.Cancel(b.Context(), tx, instance, "canceled by a test", time.Now())

		return err
	})
}

// await sleeps until the operation has ended.
func (b *fixture) await(id string) process.Record {
	b.Helper()

	for range 100_000 {
		if record := b.get(id); record.State.Terminal() {
			return record
		}

		time.Sleep(100 * time.Millisecond) // fake time
	}

	b.Fatalf("operation %s has not ended: %+v", id, b.get(id))

	return process.Record{}
}

func (b *fixture) get(id string) process.Record {
	b.Helper()

	record, err := b.store.Get(b.Context(), b.db.Reader(), id)
	if err != nil {
		b.Fatal(err)
	}

	return record
}

func (b *fixture) trace(record process.Record) []string {
	b.Helper()

	var decoded data

	payload, err := b.store.Payload(b.Context(), b.db.Reader(), record.ID)
	if err != nil {
		b.Fatal(err)
	}

	if err := json.Unmarshal(payload, &decoded); err != nil {
		b.Fatal(err)
	}

	return decoded.Trace
}

func (b *fixture) timeline(id string) []process.Entry {
	b.Helper()

	timeline, err := b.store.Timeline(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}

	return timeline
}

// history formats the timeline as lines of step and outcome. Lines of retries include the range of attempts.
func (b *fixture) history(id string) []string {
	b.Helper()

	lines := []string{}
	for _, entry := range b.timeline(id) {
		line := string(entry.Outcome)
		if entry.Step != "" {
			line = entry.Step + " " + line
		}

		if entry.FirstAttempt > 0 {
			line += fmt.Sprintf(" %d-%d", entry.FirstAttempt, entry.Attempt)
		}

		lines = append(lines, line)
	}

	return lines
}
