package notifications_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/notification"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/notifications"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)

// fixture contains the stores of notifications and operations.
type fixture struct {
	*testing.T

	db         *storage.DB
	operations *operations.Store
	events     *eventlog.Store
	store      *notifications.Store
}

func eachDatabase(t *testing.T, test func(f fixture)) {
	t.Helper()

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		ops, err := operations.Open(t.Context(), db, storagetest.Keys(t))
		if err != nil {
			t.Fatal(err)
		}

		events, err := eventlog.Open(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}

		store, err := notifications.Open(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}

		test(fixture{t, db, ops, events, store})
	})
}

// hold accepts an operation of the instance and claims it.
func (f fixture) hold(kind, instanceID string) process.Record {
	f.Helper()

	return storagetest.Hold(f.T, f.db, f.operations, kind, instanceID)
}

func (f fixture) begin(by process.Record) {
	f.Helper()

	if err := f.events.StartMaintenance(f.Context(), by, now); err != nil {
		f.Fatal(err)
	}
}

// end ends the operation with the given state.
func (f fixture) end(by process.Record, state process.State) {
	f.Helper()

	by.State, by.FinishedAt = state, now.Add(time.Hour)
	if _, err := f.operations.Save(f.Context(), process.Progress{Record: by, Release: true, Now: by.FinishedAt}); err != nil {
		f.Fatal(err)
	}
}

// add turns all events into messages. It does so twice, because a repetition must add nothing.
func (f fixture) add() {
	f.Helper()

	if _, err := f.events.Publish(f.Context(), now); err != nil {
		f.Fatal(err)
	}

	if held, err := f.store.Hold(f.Context(), "replica", now, now); err != nil || !held {
		f.Fatalf("held %t, %v", held, err)
	}

	position, err := f.store.Position(f.Context())
	if err != nil {
		f.Fatal(err)
	}

	for _, from := range []int64{position, 0} {
		found, last, err := f.events.Read(f.Context(), notifications.Selected(), from, 99)
		if err != nil {
			f.Fatal(err)
		}

		if position, err = f.store.Position(f.Context()); err != nil {
			f.Fatal(err)
		}

		if added, err := f.store.Add(f.Context(), "replica", found, position, last); err != nil || !added {
			f.Fatalf("added %t, %v", added, err)
		}
	}
}

// deliver ends the message.
func (f fixture) deliver(message notifications.Pending) {
	f.Helper()

	for _, want := range []bool{true, false} {
		if ended, err := f.store.End(f.Context(), message, true, now); err != nil || ended != want {
			f.Fatalf("ended %t, %v", ended, err)
		}
	}
}

// sent adds the messages for all events, delivers those that are due one after the other, and returns them as texts.
func (f fixture) sent(at time.Time) []string {
	f.Helper()
	f.add()

	return f.due(at)
}

// due delivers all due messages one after the other and returns them as texts.
func (f fixture) due(at time.Time) []string {
	f.Helper()

	var sent []string

	for {
		due, err := f.store.Due(f.Context(), at, 9)
		if err != nil {
			f.Fatal(err)
		}

		if len(due) == 0 {
			return sent
		}

		for _, message := range due {
			sent = append(sent, fmt.Sprintf("%s: %s %s %s %s", message.EventID, message.InstanceID, message.Type, message.Action, message.At.Format(time.TimeOnly)))
			f.deliver(message)
		}
	}
}

func (f fixture) wantSent(reason string, want ...string) {
	f.Helper()

	if diff := cmp.Diff(want, f.sent(now.Add(2*time.Hour))); diff != "" {
		f.Errorf("%s: -want +got\n%s", reason, diff)
	}
}

func TestEvents(t *testing.T) {
	for _, c := range []struct {
		state      process.State
		wantAction notification.Action
	}{
		{process.Succeeded, notification.ActionFinish},
		{process.Failed, notification.ActionFinish},
		{process.Canceled, notification.ActionCancel},
	} {
		t.Run(string(c.state), func(t *testing.T) {
			eachDatabase(t, func(f fixture) {
				const id = "upgradeKyma of one"

				upgrade := f.hold(environment.KindUpgradeKyma, "one")

				for range 2 {
					f.begin(upgrade)
				}

				f.wantSent("a step that runs twice", id+": one 1 create 03:04:05", id+": one 1 begin 03:04:05")
				f.begin(upgrade)
				f.wantSent("a step that runs again after the delivery")
				f.end(upgrade, c.state)
				f.wantSent("the end", id+": one 1 "+string(c.wantAction)+" 04:04:05")
			})
		})
	}
}

// TestCancelRequest ends an upgrade whose cancellation was requested while its last step ran.
func TestCancelRequest(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		upgrade := f.hold(environment.KindUpgradeCluster, "one")
		f.begin(upgrade)
		f.sent(now)

		if err := f.db.InTx(f.Context(), func(tx storage.Tx) error {
			_, err := f.operations.CancelOne(f.Context(), tx, upgrade.ID, "a test", now)

			return err
		}); err != nil {
			f.Fatal(err)
		}

		f.end(upgrade, process.Succeeded)
		f.wantSent("the stored state counts, not that of the run", "upgradeCluster of one: one 0 cancel 04:04:05")
	})
}

func TestOperationsWithoutAnEvent(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		f.end(f.hold(environment.KindUpgradeKyma, "dry run"), process.Succeeded)
		f.end(f.hold(environment.KindUpdate, "updated"), process.Succeeded)
		f.wantSent("no event was begun")

		upgrade := f.hold(environment.KindUpgradeKyma, "one")
		f.begin(upgrade)
		f.sent(now)

		// A save that does not end the operation.
		if _, err := f.operations.Save(f.Context(), process.Progress{Record: upgrade, Now: now}); err != nil {
			f.Fatal(err)
		}

		f.wantSent("the upgrade has not ended")
	})
}

func TestLostLeaseOfAnUpgrade(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		upgrade := f.hold(environment.KindUpgradeKyma, "one")
		late := upgrade
		late.Lease.Fence--

		if err := f.events.StartMaintenance(f.Context(), late, now); !errors.Is(err, process.ErrLeaseLost) {
			f.Errorf("got %v", err)
		}

		f.wantSent("nothing is written without the lease")
		f.begin(upgrade)

		late.State, late.FinishedAt = process.Failed, now
		if _, err := f.operations.Save(f.Context(), process.Progress{Record: late, Now: now}); !errors.Is(err, process.ErrLeaseLost) {
			f.Errorf("got %v", err)
		}

		f.wantSent("nor is the end", "upgradeKyma of one: one 1 create 03:04:05", "upgradeKyma of one: one 1 begin 03:04:05")
	})
}

// TestOrder checks that the messages of an event stay in order while the first one is retried, and do not delay the messages of
// other events.
func TestOrder(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		first, second := f.hold(environment.KindUpgradeKyma, "one"), f.hold(environment.KindUpgradeCluster, "two")
		f.begin(first)
		f.end(first, process.Succeeded)
		f.begin(second)
		f.add()

		due, err := f.store.Due(f.Context(), now, 9)
		if err != nil || len(due) != 2 {
			f.Fatalf("one message of each event is due, got %+v, %v", due, err)
		}

		if limited, err := f.store.Due(f.Context(), now, 1); err != nil || len(limited) != 1 {
			f.Errorf("with a limit of one: %+v, %v", limited, err)
		}

		// Both have the same due time, so they are sorted by event.
		repeated, err := f.store.Attempt(f.Context(), due[1], now)
		if err != nil {
			f.Fatal(err)
		}

		if err := f.store.Retry(f.Context(), repeated, now.Add(time.Minute)); err != nil {
			f.Fatal(err)
		}

		if diff := cmp.Diff([]string{
			"upgradeCluster of two: two 0 create 03:04:05", "upgradeCluster of two: two 0 begin 03:04:05",
		}, f.sent(now.Add(59*time.Second))); diff != "" {
			f.Errorf("during the pause: -want +got\n%s", diff)
		}

		due, err = f.store.Due(f.Context(), now.Add(time.Minute), 9)
		if err != nil || len(due) != 1 || due[0].Attempts != 1 || !due[0].FirstAt.Equal(now) || due[0].Action != notification.ActionCreate {
			f.Errorf("after the pause: %+v, %v", due, err)
		}

		f.wantSent("all others follow", "upgradeKyma of one: one 1 create 03:04:05", "upgradeKyma of one: one 1 begin 03:04:05",
			"upgradeKyma of one: one 1 finish 04:04:05")
	})
}

func TestLease(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		for _, step := range []struct {
			reason, owner string
			after         time.Duration
			want          bool
		}{
			{"the lease is free", "a", 0, true},
			{"another replica has it", "b", 59 * time.Second, false},
			{"it is renewed", "a", 30 * time.Second, true},
			{"the renewal counts", "b", 89 * time.Second, false},
			{"it has expired", "b", 90 * time.Second, true},
			{"it is lost", "a", 91 * time.Second, false},
		} {
			at := now.Add(step.after)

			if held, err := f.store.Hold(f.Context(), step.owner, at, at.Add(time.Minute)); err != nil || held != step.want {
				f.Errorf("%s: got %t, %v", step.reason, held, err)
			}
		}

		for _, owner := range []string{"a", "b"} { // a does not have the lease
			if err := f.store.ReturnLease(f.Context(), owner); err != nil {
				f.Error(err)
			}

			at := now.Add(92 * time.Second)
			if held, err := f.store.Hold(f.Context(), "c", at, at.Add(time.Minute)); err != nil || held != (owner == "b") {
				f.Errorf("after %s has given back the lease: %t, %v", owner, held, err)
			}
		}
	})
}

func TestBacklogAndRemoval(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		if count, _, err := f.store.Backlog(f.Context()); count != 0 || err != nil {
			f.Errorf("an empty outbox: %d, %v", count, err)
		}

		running, ended := f.hold(environment.KindUpgradeKyma, "one"), f.hold(environment.KindUpgradeKyma, "two")
		f.begin(running)
		f.begin(ended)
		f.end(ended, process.Failed)
		f.add()

		if count, oldest, err := f.store.Backlog(f.Context()); count != 5 || !oldest.Equal(now) || err != nil {
			f.Errorf("%d messages since %s, %v", count, oldest, err)
		}

		// The end of the second upgrade is an hour later.
		for _, step := range []struct {
			before time.Duration
			want   int64
		}{{0, 0}, {time.Second, 2}, {2 * time.Hour, 1}} {
			if removed, err := f.store.Remove(f.Context(), now.Add(step.before)); removed != step.want || err != nil {
				f.Errorf("before %s: removed %d, %v", step.before, removed, err)
			}
		}

		want := []string{"upgradeKyma of one: one 1 create 03:04:05", "upgradeKyma of one: one 1 begin 03:04:05"}
		if diff := cmp.Diff(want, f.due(now.Add(2*time.Hour))); diff != "" {
			f.Errorf("the messages of an upgrade that runs stay: -want +got\n%s", diff)
		}
	})
}
