package credentials_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/credentials"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instanceevents"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/reports"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// runtimes simulates runtimes. It contains the client secrets in their Secrets, by instance.
type runtimes struct {
	mutex   sync.Mutex
	secrets map[string]string
	away    map[string]bool
	checked []string
	// during, if set, is called once in the first check.
	during func()
	// lost, if set, is called after each write. The response to the write is then lost.
	lost func()
}

func (r *runtimes) RepairServiceManager(ctx context.Context, instance environment.Instance, wanted environment.ServiceManager,
	begin func(context.Context) error,
) (bool, error) {
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

	secret := wanted.ClientSecret.Reveal().Reveal()
	if r.secrets[instance.ID] == secret {
		return false, nil
	}

	if err := begin(ctx); err != nil {
		return false, err
	}

	r.secrets[instance.ID] = secret

	if r.lost != nil {
		r.lost()

		return false, errors.New("the runtime does not respond")
	}

	return true, nil
}

// repairFixture has an empty database, and runtimes whose Secrets a repairer checks.
type repairFixture struct {
	*testing.T
	credentials.Repairer

	clock   *clocktesting.FakeClock
	present *runtimes
}

func newRepairFixture(t *testing.T, db *storage.DB) *repairFixture {
	t.Helper()

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

	present := &runtimes{secrets: map[string]string{}, away: map[string]bool{}}

	return &repairFixture{t, credentials.Repairer{
		DB: db, Instances: known, Operations: ops, Events: events, Reports: claims, Runtimes: present,
		Results: credentials.NewChecks(), Interval: 6 * time.Hour, Clock: clock, Log: logging.Discard(),
	}, clock, present}
}

// add adds an instance, with the credentials in its runtime.
func (f *repairFixture) add(id string, wanted *environment.ServiceManager) {
	f.Helper()

	instance := environment.Instance{ID: id, ShootName: "c-" + id, RuntimeID: "r-" + id, CreatedAt: f.clock.Now(), UpdatedAt: f.clock.Now()}
	instance.Request.Cluster.ServiceManager = wanted
	f.present.secrets[id] = "wanted"

	if err := f.DB.InTx(f.Context(), func(tx storage.Tx) error { return storagetest.Insert(f.Context(), tx, f.Instances, instance) }); err != nil {
		f.Fatal(err)
	}
}

// run advances the clock in steps, runs two replicas in each, and returns the sorted instances that were checked.
func (f *repairFixture) run(after, step time.Duration) []string {
	f.Helper()

	f.present.checked = nil

	for range after / step {
		f.clock.Step(step)

		for range 2 {
			if err := f.Repair(f.Context()); err != nil {
				f.Fatal(err)
			}
		}
	}

	slices.Sort(f.present.checked)

	return f.present.checked
}

// wantShown compares the text of the instance's newest event with the row of the table. Without an event, the row must show no text.
func (f *repairFixture) wantShown(id, row string) {
	f.Helper()

	recorded, err := f.Events.OfInstance(f.Context(), id)
	if err != nil {
		f.Fatal(err)
	}

	text := ""
	if len(recorded) > 0 {
		text = recorded[0].Message
	}

	faulttable.Shows(f.T, "btp.md#drift", row, text)
}

// events returns the events of an instance.
func (f *repairFixture) events(id string) (found []string) {
	f.Helper()

	recorded, err := f.Events.OfInstance(f.Context(), id)
	if err != nil {
		f.Fatal(err)
	}

	for _, event := range recorded {
		found = append(found, fmt.Sprintf("%s %s × %d", event.System, event.Result, event.Count))
	}

	return found
}

// TestRepair checks passes over more runtimes than a batch, with two replicas: repairs, back-off for runtimes that are unreachable, and pauses
// during operations.
//
//faults:row btp.md#drift has the values of the instance
//faults:row btp.md#drift has other values, or no Secret
//faults:row btp.md#drift is unreachable, slow, returns no JSON, or rejects the request
//faults:row btp.md#drift has an unfinished operation
func TestRepair(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newRepairFixture(t, db)
		run, present := f.run, f.present
		present.away["i05"] = true

		log, logger := &bytes.Buffer{}, logrus.New()
		logger.SetOutput(log)

		f.Log = logger

		const count = 30

		for i := range count {
			wanted := &environment.ServiceManager{ClientSecret: "wanted"}
			if i == 7 { // has no credentials
				wanted = nil
			}

			f.add(fmt.Sprintf("i%02d", i), wanted)
		}

		present.secrets["i03"] = "changed"
		storagetest.Hold(t, db, f.Operations, environment.KindUpdate, "i09")

		if checked := run(time.Minute, 10*time.Second); len(checked) != count-2 || len(slices.Compact(checked)) != count-2 || present.secrets["i03"] != "wanted" {
			t.Errorf("the first pass checks %v, and the changed Secret has %q", checked, present.secrets["i03"])
		}

		if diff := cmp.Diff([]string{"i03", "i05"}, run(5*time.Minute, 10*time.Second)); diff != "" {
			t.Errorf("retries: -want +got\n%s", diff)
		}

		if diff := cmp.Diff([]string{"i05", "i05"}, run(30*time.Minute, 10*time.Second)); diff != "" {
			t.Errorf("the back-off doubles: -want +got\n%s", diff)
		}

		f.wantShown("i05", "is unreachable, slow, returns no JSON, or rejects the request")
		f.wantShown("i09", "has an unfinished operation")
		delete(present.away, "i05")

		present.during = func() {
			before := len(present.checked)

			f.clock.Step(time.Minute)

			if err := f.Repair(t.Context()); err != nil || len(present.checked) != before {
				t.Errorf("while a replica checks slow runtimes, another one has checked %v, %v", present.checked, err)
			}
		}

		if checked := run(6*time.Hour, 5*time.Minute); len(slices.Compact(checked)) != count-2 {
			t.Errorf("the next pass checks %v", checked)
		}

		got := map[string][]string{}

		for i := range count {
			id := fmt.Sprintf("i%02d", i)

			if recorded := f.events(id); len(recorded) > 0 {
				got[id] = recorded
			}
		}

		if diff := cmp.Diff(map[string][]string{
			"i03": {"btp-operator repaired × 1"}, "i05": {"btp-operator current × 1", "btp-operator failed × 4"},
		}, got); diff != "" {
			t.Errorf("events: -want +got\n%s", diff)
		}

		f.wantShown("i03", "has other values, or no Secret")
		f.wantShown("i04", "has the values of the instance")

		logged := map[string]int{}

		for line := range strings.Lines(log.String()) {
			for _, text := range []string{"was repaired", "checking the BTP service operator's Secret failed"} {
				for _, id := range []string{"i03", "i05"} {
					if strings.Contains(line, text) && strings.Contains(line, id) {
						logged[id+" "+text]++
					}
				}
			}
		}

		if diff := cmp.Diff(map[string]int{"i03 was repaired": 1, "i05 checking the BTP service operator's Secret failed": 4}, logged); diff != "" {
			t.Errorf("log: -want +got\n%s", diff)
		}
	})
}

// TestPassBeginsAfterRetries lets a pass become due while the retries of earlier checks fill a batch. The pass begins with the next
// batch.
func TestPassBeginsAfterRetries(t *testing.T) {
	f := newRepairFixture(t, storagetest.SQLite(t))

	const batch = 25

	for i := range batch {
		id := fmt.Sprintf("i%02d", i)
		f.add(id, &environment.ServiceManager{ClientSecret: "wanted"})
		f.present.away[id] = true
	}

	f.run(time.Minute, 10*time.Second)
	f.add("z", &environment.ServiceManager{ClientSecret: "wanted"})
	f.present.secrets["z"] = "changed"

	f.clock.Step(f.Interval) // the retries and the pass are due

	if checked := f.run(time.Minute, 10*time.Second); !slices.Contains(checked, "z") || f.present.secrets["z"] != "wanted" {
		t.Errorf("the pass has checked %v", checked)
	}
}

// TestReplicaDiesAfterRepair checks that a repair has its event if the replica dies before it is recorded, or if the response of the runtime
// is lost.
func TestReplicaDiesAfterRepair(t *testing.T) {
	for name, test := range map[string]struct {
		dies bool
		want []string
	}{
		"Dies": {true, []string{"btp-operator repaired × 1"}},
		"Lost": {false, []string{"btp-operator repaired × 1", "btp-operator failed × 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
				f := newRepairFixture(t, db)
				f.add("one", &environment.ServiceManager{ClientSecret: "wanted"})
				f.run(10*time.Second, 10*time.Second) // claims for the first time
				f.present.secrets["one"] = "changed"

				dying, die := context.WithCancel(t.Context())
				defer die()

				f.present.lost = func() {
					if test.dies {
						die()
					}
				}

				f.clock.Step(10 * time.Second)

				if err := f.Repair(dying); err != nil && dying.Err() == nil {
					t.Fatal(err)
				}

				f.present.lost = nil

				if f.present.secrets["one"] != "wanted" {
					t.Fatal("the Secret is not repaired")
				}

				f.run(24*time.Hour, 5*time.Minute)

				if diff := cmp.Diff(test.want, f.events("one")); diff != "" {
					t.Errorf("events: -want +got\n%s", diff)
				}
			})
		})
	}
}
