package orchestration_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// onPostgres returns a fixture on PostgreSQL. In SQLite, transactions that write are never concurrent.
func onPostgres(t *testing.T) *stepped {
	t.Helper()

	clock := clocktesting.NewFakePassiveClock(began)

	return &stepped{fixture: newFixture(t, storagetest.Open(t, storagetest.Postgres(t)), clock), clock: clock}
}

// overlapping makes the calls overlap, and returns their errors. A lock prevents changes of orchestrations until each call waits for it,
// or for a call before it.
func (f *stepped) overlapping(calls ...func() error) []error {
	f.Helper()

	results := make([]chan error, 0, len(calls))

	f.tx(func(tx storage.Tx) error {
		if _, err := storage.Exec(f.Context(), tx, `LOCK TABLE orchestrations IN SHARE MODE`); err != nil {
			return err
		}

		for _, call := range calls {
			result := make(chan error, 1)
			results = append(results, result)

			go func() { result <- call() }()

			for waiting := 0; waiting < len(results) && len(result) == 0; {
				var err error
				if waiting, err = storage.Get[int](f.Context(), f.db.Reader(),
					`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`); err != nil {
					return err
				}
			}
		}

		return nil
	})

	errs := make([]error, 0, len(calls))
	for _, result := range results {
		errs = append(errs, <-result)
	}

	return errs
}

// advancing returns a function that calls the conductor.
func (f *stepped) advancing(conductor process.Record) func() error {
	return func() error {
		_, err := f.Advance(f.Context(), conductor)

		return err
	}
}

// TestChangeDuringAnAdvance changes an orchestration just before its conductor runs: the conductor keeps the change, and starts nothing.
func TestChangeDuringAnAdvance(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *stepped) error
		state  environment.OrchestrationState
		stats  map[string]int
	}{
		"cancel": {func(f *stepped) error { return f.Cancel(f.Context(), f.id) }, environment.OrchestrationCanceling, map[string]int{"canceled": 3}},
		"pause":  {func(f *stepped) error { return f.Pause(f.Context(), f.id) }, environment.OrchestrationPaused, map[string]int{"pending": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			f := onPostgres(t)
			f.fill(3)
			conductor := f.start(environment.KindUpgradeCluster, all(1))

			if err := errors.Join(f.overlapping(func() error { return c.change(f) }, f.advancing(conductor))...); err != nil {
				t.Fatal(err)
			}

			if got, stats := f.get(f.id); got.State != c.state || !cmp.Equal(c.stats, stats) {
				t.Errorf("got %s with %v, want %s with %v", got.State, stats, c.state, c.stats)
			}
		})
	}
}

// TestRetryDuringTheEnd retries a target just before the conductor ends the orchestration, which then does not end.
func TestRetryDuringTheEnd(t *testing.T) {
	f := onPostgres(t)
	f.fill(1)
	conductor := f.start(environment.KindUpgradeCluster, all(1))
	f.advance(conductor)
	f.end(process.Failed)
	f.advance(conductor)

	errs := f.overlapping(func() error {
		_, err := f.Retry(f.Context(), f.id, orchestration.Retry{})

		return err
	}, func() error { return f.finish(conductor) })

	if errs[0] != nil || errs[1] == nil || !strings.Contains(errs[1].Error(), "targets have become pending again") {
		t.Errorf("got %v", errs)
	}

	f.wantStats("the target is retried", map[string]int{"retrying": 1})
}

// TestTwoConductors runs the conductor on two replicas at once, as after a lease has expired. Together they start no more upgrades than
// allowed.
func TestTwoConductors(t *testing.T) {
	f := onPostgres(t)
	f.fill(6)
	conductor := f.start(environment.KindUpgradeCluster, all(2))

	if err := errors.Join(f.overlapping(f.advancing(conductor), f.advancing(conductor))...); err != nil {
		t.Fatal(err)
	}

	f.wantStats("two workers", map[string]int{"in progress": 2, "pending": 4})

	started, err := storage.Get[int](t.Context(), f.db.Reader(), `SELECT count(*) FROM operations WHERE kind = ?`, environment.KindUpgradeCluster)
	if err != nil || started != 2 {
		t.Errorf("got %d upgrades, %v, want 2", started, err)
	}
}

// TestConcurrentApply applies a plan twice at once. The second call is rejected.
func TestConcurrentApply(t *testing.T) {
	f := onPostgres(t)
	f.fill(1)
	f.plan(all(1))

	apply := func() error {
		_, err := f.Apply(f.Context(), f.id, false)

		return err
	}

	if errs := f.overlapping(apply, apply); errs[0] != nil || !failure.Is(errs[1], failure.Conflict) {
		t.Errorf("got %v", errs)
	}

	f.wantConductors(1)
}

// TestConcurrentUndo undoes an orchestration twice at once. Both calls return the same undo.
func TestConcurrentUndo(t *testing.T) {
	f := onPostgres(t)
	f.kyma("one")

	parameters := all(1)
	parameters.Kyma = &fleet.Kyma{Version: "2.0.0"}
	f.run(f.start(environment.KindUpgradeKyma, parameters))

	ids := make(chan string, 2)
	undo := func() error {
		id, err := f.Undo(f.Context(), f.id, false)
		ids <- id

		return err
	}

	if err := errors.Join(f.overlapping(undo, undo)...); err != nil {
		t.Fatal(err)
	}

	if first, second := <-ids, <-ids; first != second || first == "" {
		t.Errorf("got the undos %q and %q", first, second)
	}

	f.wantConductors(2)
}

// wantConductors checks the number of conductors of all orchestrations.
func (f *stepped) wantConductors(want int) {
	f.Helper()

	got, err := storage.Get[int](f.Context(), f.db.Reader(), `SELECT count(*) FROM operations WHERE kind = ?`, environment.KindOrchestrate)
	if err != nil || got != want {
		f.Errorf("got %d conductors, %v, want %d", got, err, want)
	}
}
