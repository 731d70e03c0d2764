package credentials_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/credentials"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instanceevents"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/reports"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// runtimes has the client secrets in runtimes, by instance.
type runtimes struct {
	mutex   sync.Mutex
	secrets map[string]string
	away    map[string]bool
	checked []string
	// during, if set, is called once in the first check.
	during func()
}

func (r *runtimes) RepairServiceManager(_ context.Context, instance environment.Instance, wanted environment.ServiceManager) (bool, error) {
	r.mutex.Lock()
	during := r.during
	r.during = nil
	r.mutex.Unlock()

	if during != nil {
		during()
	}

	r.mutex.Lock()
	defer r.mutex.Unlock()

	r.checked = append(r.checked, instance.ID)
	if r.away[instance.ID] {
		return false, errors.New("the runtime does not respond")
	}

	former := r.secrets[instance.ID]
	r.secrets[instance.ID] = wanted.ClientSecret.Reveal().Reveal()

	return former != r.secrets[instance.ID], nil
}

// TestRepair checks passes over more runtimes than a batch, with two replicas: repairs, back-off for runtimes that are away, and pauses
// during operations.
func TestRepair(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		keys, clock := storagetest.Keys(t), clocktesting.NewFakeClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))

		ops, err := operations.Open(t.Context(), db, keys)
		if err != nil {
			t.Fatal(err)
		}

		known, err := instances.Open(t.Context(), db, keys)
		if err != nil {
			t.Fatal(err)
		}

		events, err := instanceevents.Open(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}

		claims, err := reports.Open(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}

		const count = 30

		present := &runtimes{secrets: map[string]string{}, away: map[string]bool{"i05": true}}

		for i := range count {
			id := fmt.Sprintf("i%02d", i)
			instance := environment.Instance{ID: id, ShootName: "c-" + id, RuntimeID: "r-" + id, CreatedAt: clock.Now(), UpdatedAt: clock.Now()}

			if i != 7 { // has no credentials
				instance.Request.Cluster.ServiceManager = &environment.ServiceManager{ClientSecret: "wanted"}
			}

			present.secrets[id] = "wanted"

			if err := db.InTx(t.Context(), func(tx storage.Tx) error { return storagetest.Insert(t.Context(), tx, known, instance) }); err != nil {
				t.Fatal(err)
			}
		}

		present.secrets["i03"] = "changed"
		storagetest.Hold(t, db, ops, environment.KindUpdate, "i09")

		repairer := credentials.Repairer{
			DB: db, Instances: known, Operations: ops, Events: events, Reports: claims, Runtimes: present,
			Results: credentials.NewChecks(), Interval: 6 * time.Hour, Clock: clock, Log: logging.Discard(),
		}

		// run advances the clock in steps, runs two replicas in each, and returns the sorted instances that were checked.
		run := func(after, step time.Duration) []string {
			t.Helper()

			present.checked = nil

			for range after / step {
				clock.Step(step)

				for range 2 {
					if err := repairer.Repair(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}

			slices.Sort(present.checked)

			return present.checked
		}

		if checked := run(time.Minute, 10*time.Second); len(checked) != count-2 || len(slices.Compact(checked)) != count-2 || present.secrets["i03"] != "wanted" {
			t.Errorf("the first pass checks %v, and the changed Secret has %q", checked, present.secrets["i03"])
		}

		if diff := cmp.Diff([]string{"i03", "i05"}, run(5*time.Minute, 10*time.Second)); diff != "" {
			t.Errorf("retries: -want +got\n%s", diff)
		}

		if diff := cmp.Diff([]string{"i05", "i05"}, run(30*time.Minute, 10*time.Second)); diff != "" {
			t.Errorf("the back-off doubles: -want +got\n%s", diff)
		}

		delete(present.away, "i05")

		present.during = func() {
			before := len(present.checked)

			clock.Step(time.Minute)

			if err := repairer.Repair(t.Context()); err != nil || len(present.checked) != before {
				t.Errorf("while a replica checks slow runtimes, another one has checked %v, %v", present.checked, err)
			}
		}

		if checked := run(6*time.Hour, 5*time.Minute); len(slices.Compact(checked)) != count-2 {
			t.Errorf("the next pass checks %v", checked)
		}

		got := map[string][]string{}

		for i := range count {
			id := fmt.Sprintf("i%02d", i)

			recorded, err := events.OfInstance(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}

			for _, event := range recorded {
				got[id] = append(got[id], fmt.Sprintf("%s %s × %d", event.System, event.Result, event.Count))
			}
		}

		if diff := cmp.Diff(map[string][]string{
			"i03": {"btp-operator repaired × 1"}, "i05": {"btp-operator current × 1", "btp-operator failed × 4"},
		}, got); diff != "" {
			t.Errorf("events: -want +got\n%s", diff)
		}
	})
}
