package refresh_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/refresh"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// shoots returns the window or the error for all Shoots. It records the calls.
type shoots struct {
	window fleet.WindowTimes
	err    error
	calls  []string
}

func (s *shoots) MaintenanceWindow(_ context.Context, tenant, runtimeID string) (fleet.WindowTimes, error) {
	s.calls = append(s.calls, tenant+" "+runtimeID)

	return s.window, s.err
}

func TestWindows(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()

		keys := storagetest.Keys(t)
		clock := clocktesting.NewFakeClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))

		accepted, err := operations.Open(t.Context(), db, keys)
		if err != nil {
			t.Fatal(err)
		}

		known, err := instances.Open(t.Context(), db, keys)
		if err != nil {
			t.Fatal(err)
		}

		store, err := orchestrations.Open(t.Context(), db, accepted)
		if err != nil {
			t.Fatal(err)
		}

		one := environment.Instance{
			ID: "one", GlobalAccountID: "ga", ShootName: "c-one", RuntimeID: "r-one", Provider: "aws", CreatedAt: clock.Now(), UpdatedAt: clock.Now(),
		}
		own := environment.Instance{ID: "own", ShootName: "c-own", RuntimeID: "r-own", CreatedAt: clock.Now(), UpdatedAt: clock.Now()}

		if err := db.InTx(t.Context(), func(tx storage.Tx) error {
			return errors.Join(storagetest.Insert(t.Context(), tx, known, one), storagetest.Insert(t.Context(), tx, known, own))
		}); err != nil {
			t.Fatal(err)
		}

		upstream := &shoots{err: errors.New("the Provisioner does not respond")}
		replicas := []*refresh.Windows{}

		for range 2 {
			replicas = append(replicas, &refresh.Windows{DB: db, Store: store, Instances: known, Provisioner: upstream, Clock: clock, Log: logging.Discard()})
		}

		// step advances the clock, runs all replicas, and compares the calls and the stored window.
		step := func(reason string, after time.Duration, calls []string, window string) {
			t.Helper()
			clock.Step(after)

			upstream.calls = nil

			for _, replica := range replicas {
				if err := errors.Join(replica.AddMissing(t.Context()), replica.Refresh(t.Context())); err != nil {
					t.Fatal(err)
				}
			}

			if diff := cmp.Diff(calls, upstream.calls); diff != "" {
				t.Errorf("%s: calls: -want +got\n%s", reason, diff)
			}

			stored, err := store.ShootWindows(t.Context(), db.Reader(), []string{"one", "own"})
			if got := fmt.Sprint(stored["one"].Begin, "-", stored["one"].End); err != nil || got != window {
				t.Errorf("%s: the window is %s, %v, want %s", reason, got, err, window)
			}
		}

		step("a cluster of the tenant has no window", 0, []string{"ga r-one"}, "-")
		step("a failure is not repeated immediately", time.Minute, nil, "-")

		upstream.err, upstream.window = nil, fleet.WindowTimes{Begin: "220000+0100", End: "230000+0100"}
		step("a failure is repeated later", 10*time.Minute, []string{"ga r-one"}, "220000+0100-230000+0100")

		upstream.window.Begin = "at night"
		step("a fresh window is not read again", 23*time.Hour, nil, "220000+0100-230000+0100")
		step("a window that cannot be used is ignored", time.Hour, []string{"ga r-one"}, "-")

		upstream.err = fmt.Errorf("no such field: %w", provisionerclient.ErrNotUnderstood)
		upstream.window = fleet.WindowTimes{}
		step("Kyma Provisioner does not report windows", 24*time.Hour, []string{"ga r-one"}, "-")
		step("it is called once a day", time.Hour, nil, "-")

		if err := known.Delete(t.Context(), db.Writer(), one); err != nil {
			t.Fatal(err)
		}

		step("a deleted instance has no window", 24*time.Hour, nil, "-")

		if left, err := store.DueShootWindows(t.Context(), clock.Now().Add(1000*time.Hour), 10); len(left) > 0 || err != nil {
			t.Errorf("the row of the deleted instance is left: %v, %v", left, err)
		}
	})
}
