package eventlog_test

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestRetention(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		for _, id := range []string{"one", "two", "three"} {
			f.accept(operation(id, environment.KindUpdate, id, "account"))
		}

		f.publish() // an hour after now

		for _, c := range []struct {
			at      time.Duration
			removed int64
		}{{25 * time.Hour, 0}, {25*time.Hour + time.Microsecond, 3}, {99 * time.Hour, 3}} {
			sweep := f.store.Retention(24*time.Hour, clocktesting.NewFakeClock(now.Add(c.at)), logging.Discard())
			if err := sweep.Sweep(f.Context()); err != nil {
				f.Fatal(err)
			}

			if head, err := f.store.Head(f.Context()); err != nil || head != (eventlog.Head{Position: 3, Removed: c.removed}) {
				f.Errorf("after %s the head is %+v, %v", c.at, head, err)
			}
		}

		f.accept(operation("four", environment.KindUpdate, "four", "account"))
		f.want("positions are not used again", eventlog.Filter{}, 0, "4 | operation.accepted | four | four | update | account | 03:04:05")
	})
}

// TestRetentionLimit checks that the oldest events are removed if there are more than a million, regardless of their age. Instead of
// adding a million events, it sets the position of the newest one.
func TestRetentionLimit(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		for _, id := range []string{"one", "two", "three"} {
			f.accept(operation(id, environment.KindUpdate, id, "account"))
		}

		f.publish()

		for _, c := range []struct {
			position, removed int64
			count             int
		}{{1_000_000, 0, 0}, {1_000_001, 1, 1}, {1_000_002, 2, 1}, {1_000_002, 2, 0}} {
			f.tx(func(tx storage.Tx) error {
				_, err := storage.Exec(f.Context(), tx, `UPDATE events_head SET position = ? WHERE id = 1`, c.position)

				return err
			})

			count, err := f.store.RemoveBefore(f.Context(), now.Add(-time.Hour), 500)
			if err != nil || count != c.count {
				f.Errorf("with %d events, removed %d, %v, want %d", c.position, count, err, c.count)
			}

			if head, err := f.store.Head(f.Context()); err != nil || head.Removed != c.removed {
				f.Errorf("with %d events the head is %+v, %v", c.position, head, err)
			}
		}

		f.want("the newest million", eventlog.Filter{}, 2, "3 | operation.accepted | three | three | update | account | 03:04:05")
	})
}

func TestErase(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		f.accept(operation("one", environment.KindUpdate, "one", "erased"))
		f.accept(operation("two", environment.KindUpdate, "two", "other"))
		f.publish()
		f.accept(operation("three", environment.KindUpdate, "three", "erased"))
		f.accept(operation("four", environment.KindUpdate, "four", ""))

		for _, want := range []int{2, 0} {
			for _, account := range []string{"erased", ""} {
				if account == "" {
					want = 0
				}

				if count, err := f.store.CountErasable(f.Context(), account); count != want || err != nil {
					f.Errorf("counted %d, %v, want %d", count, err, want)
				}

				f.tx(func(tx storage.Tx) error {
					erased, err := f.store.Erase(f.Context(), tx, account)
					if erased != want {
						f.Errorf("erased %d, want %d", erased, want)
					}

					return err
				})
			}
		}

		f.want("the others", eventlog.Filter{}, 0, "2 | operation.accepted | two | two | update | other | 03:04:05", "3 | operation.accepted | four | four | update | 03:04:05")
	})
}

// TestEraseWhileAnotherReplicaPublishes erases an account while its events are being moved.
func TestEraseWhileAnotherReplicaPublishes(t *testing.T) {
	f := newFixture(t, storagetest.Open(t, storagetest.Postgres(t)))
	f.accept(operation("one", environment.KindUpdate, "one", "erased"))

	ended := make(chan error, 1)

	// Move the events as Publish does.
	f.tx(func(tx storage.Tx) error {
		if _, err := storage.Exec(f.Context(), tx, `DELETE FROM new_events`); err != nil {
			return err
		}

		if _, err := storage.Exec(f.Context(), tx, `INSERT INTO events (position, id, type, instance_id, binding_id, orchestration_id, operation_id,
				kind, account, plan, region, state, reason, component, wave, happened_at, added_at)
			VALUES (1, '', '', '', '', '', '', '', 'erased', '', '', '', '', '', 0, ?, ?)`, storage.At(now), storage.At(now)); err != nil {
			return err
		}

		go func() {
			ended <- f.db.InTx(f.Context(), func(tx storage.Tx) error {
				_, err := f.store.Erase(f.Context(), tx, "erased")

				return err
			})
		}()

		for waiting := 0; waiting == 0; {
			var err error
			if waiting, err = storage.Get[int](f.Context(), f.db.Reader(),
				`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`); err != nil {
				return err
			}
		}

		return nil
	})

	if err := <-ended; err != nil {
		t.Fatal(err)
	}

	if count, err := f.store.CountErasable(f.Context(), "erased"); count != 0 || err != nil {
		t.Errorf("%d events are left, %v", count, err)
	}
}
