package operations_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC)

const leaseTime = 6 * time.Second

type fixture struct {
	*testing.T

	db    *storage.DB
	store *operations.Store
}

func each(t *testing.T, test func(b fixture)) {
	t.Helper()

	storagetest.EachEmptyDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()

		store, err := operations.Open(t.Context(), db, storagetest.Keys(t))
		if err != nil {
			t.Fatal(err)
		}

		test(fixture{T: t, db: db, store: store})
	})
}

func (b fixture) accept(id, instance string) {
	b.Helper()

	err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
		err := b.store.Accept(b.Context(), tx, process.New{
			ID: id, Kind: "provision", InstanceID: instance, Description: "accepted",
			Payload: json.RawMessage(`{"password":"hush"}`), At: start,
		})

		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

func (b fixture) claim(owner string, at time.Time) []process.Claimed {
	b.Helper()

	claimed := storagetest.Claim(b, b.store, process.Claim{
		Owner: owner, Limit: 10, Now: at, Until: at.Add(leaseTime),
	}, "provision", "deprovision")

	return claimed
}

// claimOne claims all due operations and fails the test unless it gets exactly the given one.
func (b fixture) claimOne(owner, id string, at time.Time) process.Record {
	b.Helper()

	claimed := b.claim(owner, at)
	if len(claimed) != 1 || claimed[0].Record.ID != id {
		b.Fatalf("claimed %v, want only %s", ids(claimed), id)
	}

	return claimed[0].Record
}

func (b fixture) save(progress process.Progress) process.State {
	b.Helper()

	state, err := b.store.Save(b.Context(), progress)
	if err != nil {
		b.Fatal(err)
	}

	return state
}

func (b fixture) get(id string) process.Record {
	b.Helper()

	record, err := b.store.Get(b.Context(), b.db.Reader(), id)
	if err != nil {
		b.Fatal(err)
	}

	return record
}

func (b fixture) cancel(instance string, at time.Time) []string {
	b.Helper()

	var canceled []string

	err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
		var err error
		canceled, err = b.store.Cancel(b.Context(), tx, instance, "deleted by the test", at)

		return err
	})
	if err != nil {
		b.Fatal(err)
	}

	return canceled
}

func (b fixture) outcomes(id string) []process.Outcome {
	b.Helper()

	timeline, err := b.store.Timeline(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}

	outcomes := []process.Outcome{}
	for _, entry := range timeline {
		outcomes = append(outcomes, entry.Outcome)
	}

	return outcomes
}

func ids(claimed []process.Claimed) []string {
	found := []string{}
	for _, work := range claimed {
		found = append(found, work.Record.ID)
	}

	return found
}

func finished(record process.Record, state process.State) process.Progress {
	record.State, record.FinishedAt = state, start.Add(time.Second)

	return process.Progress{Record: record, Release: true, Now: start.Add(time.Second)}
}

func TestAcceptRoundTrip(t *testing.T) {
	each(t, func(b fixture) {
		b.accept("op-1", "instance-1")

		want := process.Record{
			ID: "op-1", Kind: "provision", InstanceID: "instance-1", Position: 1, State: process.Pending,
			Description: "accepted", FinishedStages: []string{}, SkippedSteps: []string{},
			CreatedAt: start.Truncate(time.Microsecond), UpdatedAt: start.Truncate(time.Microsecond), NextRun: start.Truncate(time.Microsecond),
		}
		if diff := cmp.Diff(want, b.get("op-1"), cmpopts.EquateEmpty()); diff != "" {
			b.Errorf("-want +got:\n%s", diff)
		}

		payload, err := b.store.Payload(b.Context(), b.store.Reader(), "op-1")
		if err != nil || string(payload) != `{"password":"hush"}` {
			b.Errorf("the payload is %s, %v", payload, err)
		}

		stored, err := storage.Get[string](b.Context(), b.db.Reader(), `SELECT payload FROM operations`)
		if err != nil || strings.Contains(stored, "hush") || !strings.HasPrefix(stored, "test:") {
			b.Errorf("the payload is stored as %q (%v), want an envelope that names its key", stored, err)
		}

		if _, err := b.store.Get(b.Context(), b.db.Reader(), "unknown"); !errors.Is(err, storage.ErrNotFound) {
			b.Errorf("an unknown operation returns %v, want ErrNotFound", err)
		}
	})
}

func TestOperationsOfAnInstanceRunInOrder(t *testing.T) {
	each(t, func(b fixture) {
		b.accept("op-1", "instance-1")
		b.accept("op-2", "instance-1")
		b.accept("other", "instance-2")

		first := b.claim("replica-a", start)
		if len(first) != 2 {
			b.Fatalf("claimed %v, want the first operation of each instance", ids(first))
		}

		if again := b.claim("replica-b", start.Add(time.Second)); len(again) != 0 {
			b.Fatalf("claimed %v while the first operations are running", ids(again))
		}

		for _, work := range first {
			b.save(finished(work.Record, process.Succeeded))
		}

		record := b.claimOne("replica-b", "op-2", start.Add(2*time.Second))
		if record.State != process.InProgress || !record.StartedAt.Equal(start.Add(2*time.Second).Truncate(time.Microsecond)) {
			b.Errorf("the second operation is %s since %s", record.State, record.StartedAt)
		}
	})
}

func TestExpiredLeaseIsTakenOverAndFenced(t *testing.T) {
	each(t, func(b fixture) {
		b.accept("op-1", "instance-1")
		old := b.claimOne("replica-a", "op-1", start)

		if early := b.claim("replica-b", start.Add(leaseTime-time.Second)); len(early) != 0 {
			b.Fatalf("claimed %v under a valid lease", ids(early))
		}

		taken := b.claim("replica-b", start.Add(leaseTime+time.Second))
		if len(taken) != 1 || taken[0].TakenFrom != "replica-a" || taken[0].Record.Lease.Fence != old.Lease.Fence+1 {
			b.Fatalf("claimed %+v, want op-1 taken from replica-a under the next fence", taken)
		}

		if _, err := b.store.Save(b.Context(), finished(old, process.Succeeded)); !errors.Is(err, process.ErrLeaseLost) {
			b.Errorf("a late write returns %v, want ErrLeaseLost", err)
		}

		states, err := b.store.Renew(b.Context(), process.Renewal{
			Owner: "replica-a", Until: start.Add(time.Hour),
			Operations: []process.LeasedOperation{{OperationID: "op-1", Fence: old.Lease.Fence}},
		})
		if err != nil || len(states) != 0 {
			b.Errorf("the lost lease was renewed: %v, %v", states, err)
		}

		if state := b.get("op-1").State; state != process.InProgress {
			b.Errorf("after the late write the operation is %s", state)
		}
	})
}

// TestQueueDepths counts operations and leases: pending operations have no lease, and an operation that waits has returned its lease.
func TestQueueDepths(t *testing.T) {
	each(t, func(b fixture) {
		claim := func(id, replica string, at time.Time) process.Record {
			b.accept(id, "instance of "+id)

			return b.claimOne(replica, id, at)
		}

		waiting := claim("op-0", "replica-a", start)
		waiting.NextRun = start.Add(time.Hour)
		b.save(process.Progress{Record: waiting, Release: true, Now: start})
		claim("op-1", "replica-a", start)
		claim("op-2", "replica-b", start.Add(leaseTime/2))
		b.accept("op-3", "instance-3")

		for _, want := range []struct {
			at              time.Time
			leased, expired int
		}{{start, 2, 0}, {start.Add(leaseTime + time.Second), 2, 1}, {start.Add(time.Hour), 2, 2}} {
			found, err := b.store.QueueDepths(b.Context(), want.at)
			if err != nil {
				b.Fatal(err)
			}

			counts := map[process.State][3]int{}
			for _, depth := range found {
				counts[depth.State] = [3]int{depth.Count, depth.Leased, depth.Expired}
			}

			expected := map[process.State][3]int{process.Pending: {1}, process.InProgress: {3, want.leased, want.expired}}
			if diff := cmp.Diff(expected, counts); diff != "" {
				b.Errorf("at %s: -want +got\n%s", want.at, diff)
			}
		}
	})
}

// TestFencedWrites checks that a write compares both the fence and the owner of the lease: each alone would accept one of these
// late writes.
func TestFencedWrites(t *testing.T) {
	cases := map[string]struct {
		reason string
		lose   func(b fixture, claimed process.Record)
	}{
		"claimed again by the same replica": {
			"a replica that could not renew its lease claims the operation again during its first run",
			func(b fixture, _ process.Record) { b.claimOne("replica-a", "op-1", start.Add(leaseTime+time.Second)) },
		},
		"handed back": {
			"a run that returned its lease cannot write, even if no replica has claimed the operation since",
			func(b fixture, claimed process.Record) {
				b.save(process.Progress{Record: claimed, Release: true, Now: start.Add(time.Second)})
			},
		},
		"ended": {
			"an ended operation must not change",
			func(b fixture, claimed process.Record) { b.save(finished(claimed, process.Failed)) },
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			each(t, func(b fixture) {
				b.accept("op-1", "instance-1")
				old := b.claimOne("replica-a", "op-1", start)
				b.save(process.Progress{
					Record: old, Failed: []process.Attempt{{Stage: "s", Step: "kept", Number: 1, First: start, Last: start}}, Now: start,
				})
				c.lose(b, old)

				before, outcomes := b.get("op-1"), b.outcomes("op-1")
				late := finished(old, process.Succeeded)
				late.Timeline = []process.Entry{{Outcome: process.OperationSucceeded, Began: start, End: start}}
				late.Cleared = []process.Attempt{{Stage: "s", Step: "kept"}}
				late.Failed = []process.Attempt{{Stage: "s", Step: "late", Number: 1, First: start, Last: start}}

				if _, err := b.store.Save(b.Context(), late); !errors.Is(err, process.ErrLeaseLost) {
					b.Errorf("%s: the write returns %v, want ErrLeaseLost", c.reason, err)
				}

				if diff := cmp.Diff(before, b.get("op-1")); diff != "" {
					b.Errorf("%s: -before +after\n%s", c.reason, diff)
				}

				if diff := cmp.Diff(outcomes, b.outcomes("op-1")); diff != "" {
					b.Errorf("%s: timeline -before +after\n%s", c.reason, diff)
				}

				attempts, err := storage.Select[string](b.Context(), b.db.Reader(), `SELECT step FROM step_attempts`)
				if diff := cmp.Diff([]string{"kept"}, attempts); err != nil || diff != "" {
					b.Errorf("%s: %v, attempts -want +got\n%s", c.reason, err, diff)
				}
			})
		})
	}
}

// TestEffect checks that the effect of an operation is written if and only if the operation succeeds.
func TestEffect(t *testing.T) {
	errTaken := errors.New("taken")
	count := func(b fixture) int {
		b.Helper()

		rows, err := storage.Get[int](b.Context(), b.db.Reader(), `SELECT count(*) FROM results`)
		if err != nil {
			b.Fatal(err)
		}

		return rows
	}
	write := operations.Effect(func(ctx context.Context, tx storage.Tx) error {
		_, err := storage.Exec(ctx, tx, `INSERT INTO results VALUES (1)`)

		return err
	})

	cases := map[string]struct {
		reason string
		effect process.Effect
		// before is called between the claim and the write.
		before  func(b fixture, claimed process.Record)
		state   process.State
		results int
		// If failed is true, an EffectError is expected. If lost is true, ErrLeaseLost is expected.
		failed, lost bool
	}{
		"succeeded": {"the row and the end are stored", write, func(fixture, process.Record) {}, process.Succeeded, 1, false, false},
		"failed": {
			"an error leaves neither the row nor the end",
			operations.Effect(func(ctx context.Context, tx storage.Tx) error { return errors.Join(write(ctx, tx), errTaken) }),
			func(fixture, process.Record) {}, process.InProgress, 0, true, false,
		},
		"duplicate": {
			"a duplicate row of the effect is no collision of timelines",
			operations.Effect(func(ctx context.Context, tx storage.Tx) error { return errors.Join(write(ctx, tx), write(ctx, tx)) }),
			func(fixture, process.Record) {}, process.InProgress, 0, true, false,
		},
		"other type": {"an effect of a different type is an error", "effect", func(fixture, process.Record) {}, process.InProgress, 0, true, false},
		"canceled": {
			"a canceled operation has no effect", write,
			func(b fixture, _ process.Record) { b.cancel("instance-1", start) }, process.Canceled, 0, false, false,
		},
		"lease lost": {
			"a late run writes nothing", write,
			func(b fixture, claimed process.Record) {
				b.save(process.Progress{Record: claimed, Release: true, Now: start.Add(time.Second)})
			}, process.InProgress, 0, false, true,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			each(t, func(b fixture) {
				if _, err := storage.Exec(b.Context(), b.db.Writer(), `CREATE TABLE results (one INTEGER PRIMARY KEY)`); err != nil {
					b.Fatal(err)
				}

				b.accept("op-1", "instance-1")
				claimed := b.claimOne("replica-a", "op-1", start)
				c.before(b, claimed)

				ended := finished(claimed, process.Succeeded)
				ended.Effect = c.effect
				ended.Timeline = []process.Entry{{Outcome: process.OperationSucceeded, Began: start, End: start}}

				_, err := b.store.Save(b.Context(), ended)
				if _, failed := errors.AsType[*process.EffectError](err); failed != c.failed || errors.Is(err, process.ErrLeaseLost) != c.lost ||
					err != nil && !c.failed && !c.lost {
					b.Errorf("%s: %v", c.reason, err)
				}

				if got := b.get("op-1"); got.State != c.state || count(b) != c.results {
					b.Errorf("%s: the operation is %s, %d rows are written", c.reason, got.State, count(b))
				}

				if entries := len(b.outcomes("op-1")); (entries > 1) != c.state.Terminal() {
					b.Errorf("%s: the timeline has %v", c.reason, b.outcomes("op-1"))
				}
			})
		})
	}
}

// TestSaveAfterADeadlock ends an operation and thereby changes a second one, while another transaction locks both in the opposite
// order, as the renewal of leases may do. PostgreSQL aborts one of them, usually the save, because it has waited longer.
func TestSaveAfterADeadlock(t *testing.T) {
	each(t, func(b fixture) {
		if b.db.Driver() != storage.DriverPostgres {
			return // there is only one writer
		}

		b.store.AtEnd(func(process.Record) []storage.Statement {
			return []storage.Statement{{Text: `UPDATE operations SET woken = TRUE WHERE id = 'conductor'`}}
		})

		b.accept("conductor", "c")
		b.accept("upgrade", "u")

		records := map[string]process.Record{}
		for _, claimed := range b.claim("A", start) {
			records[claimed.Record.ID] = claimed.Record
		}

		saved := make(chan error, 1)

		if err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
			lock := func(id string) error {
				_, err := storage.Exec(b.Context(), tx, `UPDATE operations SET lease_until = lease_until WHERE id = ?`, id)

				return err
			}

			if err := lock("conductor"); err != nil {
				return err
			}

			go func() {
				_, err := b.store.Save(b.Context(), finished(records["upgrade"], process.Succeeded))
				saved <- err
			}()

			b.untilLocked()

			return lock("upgrade")
		}); err != nil && !storage.IsDeadlock(err) {
			b.Errorf("the other transaction: %v", err)
		}

		if err := <-saved; err != nil || b.get("upgrade").State != process.Succeeded {
			b.Errorf("want the operation to end after the deadlock, got %v, %s", err, b.get("upgrade").State)
		}
	})
}

// untilLocked waits until a call waits for a lock in PostgreSQL.
func (b fixture) untilLocked() {
	b.Helper()

	for waiting := 0; waiting == 0; {
		var err error
		if waiting, err = storage.Get[int](b.Context(), b.db.Reader(),
			`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`); err != nil {
			b.Fatal(err)
		}
	}
}

func TestRenewedLeaseIsKept(t *testing.T) {
	each(t, func(b fixture) {
		b.accept("op-1", "instance-1")
		record := b.claimOne("replica-a", "op-1", start)

		states, err := b.store.Renew(b.Context(), process.Renewal{
			Owner: "replica-a", Until: start.Add(2 * leaseTime),
			Operations: []process.LeasedOperation{{
				OperationID: "op-1", Fence: record.Lease.Fence, Stage: "create", Step: "Order", StepBegan: start, Changed: true,
			}},
		})
		if err != nil || states["op-1"] != process.InProgress {
			b.Fatalf("renewed %v, %v", states, err)
		}

		if taken := b.claim("replica-b", start.Add(leaseTime+time.Second)); len(taken) != 0 {
			b.Errorf("claimed %v despite the renewal", ids(taken))
		}

		if now := b.get("op-1"); now.Stage != "create" || now.Step != "Order" || now.StepBegan.IsZero() {
			b.Errorf("the renewal does not report the running step: %s/%s since %s", now.Stage, now.Step, now.StepBegan)
		}
	})
}

// TestLateRenewalChangesNothing checks that a replica cannot renew a lease that it has returned, even after it has claimed the
// operation again under a new lease.
func TestLateRenewalChangesNothing(t *testing.T) {
	each(t, func(b fixture) {
		b.accept("op-1", "instance-1")
		record := b.claimOne("replica-a", "op-1", start)
		b.save(process.Progress{Record: record, Release: true, Now: start.Add(time.Second)})

		renewed := func(when string) {
			b.Helper()

			states, err := b.store.Renew(b.Context(), process.Renewal{
				Owner: "replica-a", Until: start.Add(time.Hour),
				Operations: []process.LeasedOperation{{OperationID: "op-1", Fence: record.Lease.Fence, Changed: true, Stage: "s", Step: "A", StepBegan: start}},
			})
			if now := b.get("op-1"); err != nil || len(states) != 0 || now.Step != "" || !now.StepBegan.IsZero() {
				b.Errorf("%s: the previous lease was renewed as %v, %v; the operation is at step %q", when, states, err, now.Step)
			}
		}

		renewed("handed back")
		b.claimOne("replica-a", "op-1", start.Add(2*time.Second)) // the late renewal must not block the claim
		renewed("claimed again by the same replica")
	})
}

func TestSaveKeepsProgressAttemptsAndTimeline(t *testing.T) {
	each(t, func(b fixture) {
		b.accept("op-1", "instance-1")
		record := b.claimOne("replica-a", "op-1", start)

		record.FinishedStages = []string{"start"}
		record.SkippedSteps = []string{"Tag"}
		record.Stage, record.Step, record.WaitingFor = "create", "Order", "event-1"
		record.Problem = process.Problem{Message: "away", Reason: "err_away", Component: "provisioner"}
		record.Payload = json.RawMessage(`{"runtime":"r"}`)
		record.NextRun = start.Add(time.Minute)

		attempt := process.Attempt{
			Stage: "create", Step: "Order", Number: 3, First: start, Last: start.Add(time.Second),
			Failures: 2, FailingSince: start, LastError: "away",
		}
		entry := process.Entry{
			Stage: "create", Step: "Order", Attempt: 3, Began: start, End: start.Add(time.Second),
			Outcome: process.Retrying, Message: "away", NextRun: start.Add(time.Minute),
		}

		b.save(process.Progress{
			Record: record, Failed: []process.Attempt{attempt}, Timeline: []process.Entry{entry}, Release: true, Now: start.Add(time.Second),
		})

		if early := b.claim("replica-b", start.Add(59*time.Second)); len(early) != 0 {
			b.Fatalf("claimed %v before the next run", ids(early))
		}

		claimed := b.claim("replica-b", start.Add(time.Minute))
		if len(claimed) != 1 {
			b.Fatalf("claimed %v when the next run is due", ids(claimed))
		}

		round := cmpopts.EquateApproxTime(time.Microsecond)
		if diff := cmp.Diff([]process.Attempt{attempt}, claimed[0].Attempts, round); diff != "" {
			b.Errorf("attempts -want +got:\n%s", diff)
		}

		got := claimed[0].Record
		if diff := cmp.Diff(record, got, round, cmpopts.IgnoreFields(process.Record{}, "Lease", "UpdatedAt")); diff != "" {
			b.Errorf("record -want +got:\n%s", diff)
		}

		timeline, err := b.store.Timeline(b.Context(), "op-1")
		if err != nil || len(timeline) != 2 {
			b.Fatalf("timeline %v, %v", timeline, err)
		}

		if diff := cmp.Diff(entry, timeline[1], round); diff != "" {
			b.Errorf("timeline -want +got:\n%s", diff)
		}

		b.save(process.Progress{Record: got, Cleared: []process.Attempt{attempt}, Release: true, Now: start.Add(time.Minute)})

		if again := b.claim("replica-c", start.Add(2*time.Minute)); len(again) != 1 || len(again[0].Attempts) != 0 {
			b.Errorf("a finished step still has attempts: %+v", again)
		}
	})
}

func TestWakeDuringAStep(t *testing.T) {
	each(t, func(b fixture) {
		b.accept("op-1", "instance-1")
		record := b.claimOne("replica-a", "op-1", start)
		record.WaitingFor, record.NextRun = "event-1", start.Add(time.Hour)
		b.save(process.Progress{Record: record, Now: start})

		woken, err := b.store.Wake(b.Context(), []string{"event-1", "event-2"}, start.Add(time.Second))
		if err != nil || woken != 1 {
			b.Fatalf("woke %d, %v", woken, err)
		}

		b.save(process.Progress{Record: record, Release: true, Now: start.Add(2 * time.Second)})
		record = b.claimOne("replica-a", "op-1", start.Add(2*time.Second))

		record.NextRun = start.Add(time.Hour)
		b.save(process.Progress{Record: record, Release: true, Now: start.Add(3 * time.Second)})

		if early := b.claim("replica-a", start.Add(4*time.Second)); len(early) != 0 {
			b.Errorf("a wake-up had an effect twice: claimed %v", ids(early))
		}

		if woken, err := b.store.Wake(b.Context(), nil, start); err != nil || woken != 0 {
			b.Errorf("without an event %d operations were woken, %v", woken, err)
		}
	})
}

func TestCancel(t *testing.T) {
	each(t, func(b fixture) {
		b.accept("running", "instance-1")
		record := b.claimOne("replica-a", "running", start)
		b.accept("waiting", "instance-1")

		if diff := cmp.Diff([]string{"waiting", "running"}, b.cancel("instance-1", start)); diff != "" {
			b.Fatalf("canceled -want +got:\n%s", diff)
		}

		if state := b.get("waiting").State; state != process.Canceled {
			b.Errorf("the pending operation is %s", state)
		}

		record.Stage = "create"
		if state := b.save(process.Progress{Record: record, Now: start}); state != process.Canceling {
			b.Errorf("a save returns %s, want canceling", state)
		}

		done := finished(record, process.Succeeded)
		done.Timeline = []process.Entry{{Began: start, End: start, Outcome: process.OperationSucceeded}}

		if state := b.save(done); state != process.Canceled {
			b.Errorf("the operation ended as %s, want canceled", state)
		}

		want := []process.Outcome{process.Accepted, process.CancelRequested, process.OperationCanceled}
		if diff := cmp.Diff(want, b.outcomes("running")); diff != "" {
			b.Errorf("timeline -want +got:\n%s", diff)
		}
	})
}

// TestCancelExcept cancels the operations of an instance except those of one kind, which become due.
func TestCancelExcept(t *testing.T) {
	each(t, func(b fixture) {
		b.accept("running", "instance-1")
		record := b.claimOne("replica-a", "running", start)
		record.NextRun = start.Add(time.Hour)
		b.save(process.Progress{Record: record, Release: true, Now: start})
		b.accept("waiting", "instance-1")

		cancel := func(kind string, want ...string) {
			b.Helper()

			err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
				canceled, err := b.store.Cancel(b.Context(), tx, "instance-1", "deleted by the test", start.Add(time.Second), kind)
				if diff := cmp.Diff(want, canceled, cmpopts.EquateEmpty()); diff != "" {
					b.Errorf("except %s: canceled -want +got\n%s", kind, diff)
				}

				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}

		cancel(record.Kind)

		due := b.claim("replica-a", start.Add(time.Second))
		if diff := cmp.Diff([]string{"running"}, ids(due)); diff != "" {
			b.Errorf("an operation that was not canceled is due: -want +got\n%s", diff)
		}

		cancel("another kind", "waiting", "running")
	})
}

// TestSetVisibleTo changes who may see the operations of an instance and of its binding. A save by the replica that runs an operation
// must not undo the change.
func TestSetVisibleTo(t *testing.T) {
	each(t, func(b fixture) {
		b.accept("ended", "instance-1")
		b.save(finished(b.claimOne("replica-a", "ended", start), process.Succeeded))
		b.accept("running", "instance-1")
		record := b.claimOne("replica-a", "running", start)
		b.accept("waiting", "instance-1")
		b.accept("of the binding", "instance-1/binding")
		b.accept("of another instance", "instance-2")

		for _, keys := range [][]string{nil, {"instance-1", "instance-1/binding"}} {
			if err := b.db.InTx(b.Context(), func(tx storage.Tx) error { return b.store.SetVisibleTo(b.Context(), tx, keys, "beta gamma") }); err != nil {
				b.Fatal(err)
			}
		}

		b.save(finished(record, process.Succeeded))

		for id, want := range map[string]string{
			"running": "beta gamma", "waiting": "beta gamma", "of the binding": "beta gamma", "ended": "", "of another instance": "",
		} {
			if got := b.get(id).VisibleTo; got != want {
				b.Errorf("operation %q is visible to %q, want %q", id, got, want)
			}
		}
	})
}

func TestOnEnded(t *testing.T) {
	each(t, func(b fixture) {
		var notified []process.Record

		b.store.OnEnded(func(record process.Record) { notified = append(notified, record) })

		b.accept("running", "instance-1")
		b.claimOne("replica-a", "running", start)
		b.accept("waiting", "instance-1")

		undo := errors.New("an invalid change")

		err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
			_, err := b.store.Cancel(b.Context(), tx, "instance-1", "deleted by the test", start)

			return errors.Join(err, undo)
		})
		if !errors.Is(err, undo) || len(notified) > 0 {
			b.Errorf("a transaction that was rolled back (%v) reports %v", err, notified)
		}

		b.cancel("instance-1", start.Add(time.Second))
		b.cancel("instance-1", start.Add(time.Minute))

		if diff := cmp.Diff([]process.Record{b.get("waiting")}, notified); diff != "" {
			b.Errorf("reported -want +got:\n%s", diff)
		}
	})
}

func TestExpirePending(t *testing.T) {
	each(t, func(b fixture) {
		b.accept("running", "instance-1")
		b.claimOne("replica-a", "running", start)
		b.accept("waiting", "instance-1")

		b.accept("waiting too", "instance-2")

		expiry := process.Expiry{
			Before: start.Add(time.Second), Now: start.Add(time.Hour), Limit: 1, Problem: process.Problem{Message: "too late"},
		}

		for call, want := range []int{1, 1, 0} {
			expired, err := b.store.ExpirePending(b.Context(), expiry)
			if err != nil || len(expired) != want {
				b.Fatalf("call %d expired %d, want %d, %v", call, len(expired), want, err)
			}

			for _, record := range expired {
				if diff := cmp.Diff(b.get(record.ID), record); diff != "" {
					b.Errorf("call %d reports a record that differs from the stored one: -want +got:\n%s", call, diff)
				}
			}
		}

		if record := b.get("waiting"); record.State != process.Failed || record.Problem.Message != "too late" {
			b.Errorf("the pending operation is %s: %s", record.State, record.Problem.Message)
		}

		if state := b.get("running").State; state != process.InProgress {
			b.Errorf("the running operation is %s", state)
		}
	})
}

func TestReads(t *testing.T) {
	each(t, func(b fixture) {
		b.accept("op-1", "instance-1")
		b.save(finished(b.claimOne("replica-a", "op-1", start), process.Succeeded))
		b.accept("op-2", "instance-1")
		b.accept("op-3", "instance-2")

		ofInstance, err := b.store.OfInstance(b.Context(), b.db.Reader(), "instance-1")
		if err != nil || len(ofInstance) != 2 || ofInstance[0].ID != "op-2" {
			b.Errorf("operations of the instance: %v, %v", ofInstance, err)
		}

		latest, err := b.store.Latest(b.Context(), b.db.Reader(), "instance-1", "provision")
		if err != nil || latest.ID != "op-2" {
			b.Errorf("the latest operation is %s, %v", latest.ID, err)
		}

		if _, err := b.store.Latest(b.Context(), b.db.Reader(), "instance-1", "deprovision"); !errors.Is(err, storage.ErrNotFound) {
			b.Errorf("without a deprovision Latest returns %v, want ErrNotFound", err)
		}

		page, err := b.store.List(b.Context(), operations.Filter{Limit: 2})
		if err != nil || len(page) != 2 || page[0].ID != "op-3" {
			b.Fatalf("first page: %v, %v", page, err)
		}

		page, err = b.store.List(b.Context(), operations.Filter{Limit: 2, Before: page[1].CreatedAt, BeforeID: page[1].ID})
		if err != nil || len(page) != 1 || page[0].ID != "op-1" {
			b.Errorf("second page: %v, %v", page, err)
		}

		filtered, err := b.store.List(b.Context(), operations.Filter{
			InstanceID: "instance-1", Kinds: []string{"provision"}, States: []process.State{process.Pending}, Limit: 9,
		})
		if err != nil || len(filtered) != 1 || filtered[0].ID != "op-2" {
			b.Errorf("filtered: %v, %v", filtered, err)
		}

		changes, err := b.store.ChangedSince(b.Context(), start.Add(time.Second), 9)
		if err != nil || len(changes) != 1 || changes[0].ID != "op-1" || changes[0].State != string(process.Succeeded) {
			b.Errorf("changes: %v, %v", changes, err)
		}

		kinds, err := b.store.UnfinishedKinds(b.Context())
		if err != nil || !cmp.Equal(kinds, []string{"provision"}) {
			b.Errorf("unfinished kinds: %v, %v", kinds, err)
		}
	})
}

func TestOpenWithOtherKeysFails(t *testing.T) {
	each(t, func(b fixture) {
		b.accept("op-1", "instance-1")

		if _, err := operations.Open(b.Context(), b.db, storagetest.Keys(b)); err == nil || !strings.Contains(err.Error(), "APP_DATABASE_SECRET_KEYS") {
			b.Errorf("a different key with the same ID returns %v", err)
		}
	})
}
