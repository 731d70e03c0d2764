package eventlog_test

import (
	"errors"
	"testing"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestStartMaintenance records the start only once, even if the step runs again before and after the event is published. Without the
// lease, it records nothing.
func TestStartMaintenance(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)
		upgrade := storagetest.Hold(t, db, f.operations, environment.KindUpgradeCluster, "one")
		other := storagetest.Hold(t, db, f.operations, environment.KindUpgradeKyma, "two")

		late := upgrade
		late.Lease.Fence--

		if err := f.store.StartMaintenance(t.Context(), late, now); !errors.Is(err, process.ErrLeaseLost) {
			t.Errorf("without the lease: %v", err)
		}

		for range 2 {
			for range 2 {
				if err := f.store.StartMaintenance(t.Context(), upgrade, now); err != nil {
					t.Fatal(err)
				}
			}

			if _, err := f.store.Publish(t.Context(), now); err != nil {
				t.Fatal(err)
			}
		}

		if err := f.store.StartMaintenance(t.Context(), other, now); err != nil {
			t.Fatal(err)
		}

		if _, err := f.store.Publish(t.Context(), now); err != nil {
			t.Fatal(err)
		}

		found, _, err := f.store.Read(t.Context(), eventlog.Filter{Types: []eventlog.Type{eventlog.MaintenanceStarted}}, 0, 9)
		if err != nil || len(found) != 2 {
			t.Fatalf("found %+v, %v, want one event of each upgrade", found, err)
		}

		if got := found[0]; got.OperationID != upgrade.ID || got.InstanceID != "one" || got.Kind != upgrade.Kind || got.Account != upgrade.Tenant || !got.At.Equal(storage.At(now).Time) {
			t.Errorf("got %+v", got)
		}

		if kinds, _, err := f.store.Read(t.Context(), eventlog.Filter{Kinds: []string{environment.KindUpgradeKyma}}, 0, 9); err != nil ||
			len(kinds) != 2 || kinds[0].Type != eventlog.OperationAccepted || kinds[1].OperationID != other.ID {
			t.Errorf("of a kind: %+v, %v, want its acceptance and its maintenance", kinds, err)
		}
	})
}
