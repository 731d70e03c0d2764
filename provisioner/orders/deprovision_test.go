package orders_test

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

func TestRemovalCancelsTheCreation(t *testing.T) {
	cases := map[string]struct {
		reason  string
		prepare func(f *fixture, creation string)
		want    process.State
	}{
		"pending":   {"a creation that has not started is canceled immediately", func(*fixture, string) {}, process.Canceled},
		"running":   {"a running creation stops at its next safe point", func(f *fixture, _ string) { f.claimDue() }, process.Canceling},
		"succeeded": {"a finished creation does not change its state", func(f *fixture, creation string) { f.finish(creation, process.Succeeded) }, process.Succeeded},
		"failed":    {"a failed creation may have left a cluster", func(f *fixture, creation string) { f.finish(creation, process.Failed) }, process.Failed},
	}

	onBothDatabases(t, func(f *fixture) {
		for name, c := range cases {
			creation, runtimeID := f.provision("tenant", "", "c-"+name)
			c.prepare(f, creation)

			woken := f.wakes.Load()
			removal := f.deprovision("tenant", "", runtimeID)

			if got := f.state(creation); got != c.want {
				f.Errorf("%s: the creation's state is %s, want %s", c.reason, got, c.want)
			}

			if got := f.state(removal); got != process.Pending || f.runtimeOf(removal) != runtimeID {
				f.Errorf("%s: the removal's state is %s, its runtime %s", c.reason, got, f.runtimeOf(removal))
			}

			if f.wakes.Load() == woken {
				f.Errorf("%s: the engine was not woken", c.reason)
			}
		}
	})
}

func TestRemovalWaitsForTheCanceledCreation(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		creation, runtimeID := f.provision("tenant", "", "c-first")
		running := f.claimDue()[creation]
		removal := f.deprovision("tenant", "", runtimeID)

		if due := f.claimDue(); len(due) != 0 {
			f.Errorf("while the creation is running, %v is due", due)
		}

		f.end(running, process.Succeeded)

		if got := f.state(creation); got != process.Canceled {
			f.Errorf("the creation ended in state %s", got)
		}

		if _, due := f.claimDue()[removal]; !due {
			f.Error("the removal is not due")
		}
	})
}

func TestRemovalIsAcceptedOnce(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		_, runtimeID := f.provision("tenant", "", "c-first")
		first := f.deprovision("tenant", "key-1", runtimeID)

		same := func(reason, key string) {
			f.Helper()

			for range 2 {
				if again := f.deprovision("tenant", key, runtimeID); again != first {
					f.Errorf("%s: got %s, want %s", reason, again, first)
				}
			}
		}

		same("a repeated call", "key-1")
		same("another key while the removal is pending", "key-2")
		same("no key while the removal is pending", "")

		running := f.claimDue()[first]
		same("another key while the removal runs", "key-3")

		f.end(running, process.Succeeded)
		same("another key after the removal", "key-4")
		same("a repeated call after the removal", "key-2")
		same("a repeated call after the removal", "key-3")

		if operations := f.count("operations"); operations != 2 {
			f.Errorf("there are %d operations, want a creation and a removal", operations)
		}
	})
}

func TestFailedRemovalCanBeRepeated(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		_, runtimeID := f.provision("tenant", "", "c-first")
		first := f.deprovision("tenant", "key-1", runtimeID)
		f.finish(first, process.Failed)

		if again := f.deprovision("tenant", "key-1", runtimeID); again != first {
			f.Errorf("a repeated call got %s, want the first removal %s", again, first)
		}

		second := f.deprovision("tenant", "key-2", runtimeID)
		if second == first || f.state(second) != process.Pending {
			f.Errorf("a new call got %s (%s), want a new removal", second, f.state(second))
		}
	})
}

func TestConcurrentRemovals(t *testing.T) {
	for name, keyOf := range map[string]func(string) string{
		"one key": func(string) string { return "key" }, "keys": func(caller string) string { return caller }, "no key": func(string) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			onBothDatabases(t, func(f *fixture) {
				_, runtimeID := f.provision("tenant", "", "c-first")

				ids, errs := concurrently(func(name string) (string, error) {
					return f.service.Deprovision(f.Context(), caller("tenant", keyOf(name)), runtimeID)
				})

				for i := range ids {
					if errs[i] != nil || ids[i] != ids[0] {
						f.Fatalf("got %v, %v", ids, errs)
					}
				}

				if operations := f.count("operations"); operations != 2 || f.state(ids[0]) != process.Pending {
					f.Errorf("there are %d operations, the removal's state is %s", operations, f.state(ids[0]))
				}
			})
		})
	}
}

// TestRemovalOfARuntimeOfAnotherProvisioner checks that the service does not report a runtime as unknown if it has a
// Shoot but no row in the database.
func TestRemovalOfARuntimeOfAnotherProvisioner(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		_, runtimeID := f.provision("tenant", "", "c-first")
		f.foreign = map[string]string{"former": "c-former", runtimeID: "c-first"}

		_, err := f.service.Deprovision(f.Context(), caller("tenant", ""), "former")
		if known := failure.Of(err); known.Kind != failure.Conflict || known.Reason != failure.ReasonNotAdopted ||
			!strings.Contains(known.Text, `its Shoot "c-former" exists: delete the Shoot`) {
			f.Errorf("a runtime without a row: got %v", err)
		}

		if _, err := f.service.Deprovision(f.Context(), caller("other", ""), runtimeID); !failure.Is(err, failure.NotFound) {
			f.Errorf("a runtime of another tenant must look unknown: got %v", err)
		}

		f.getError = failure.New(failure.Transient, "Gardener does not answer")
		if _, err := f.service.Deprovision(f.Context(), caller("tenant", ""), "former"); !failure.Is(err, failure.Transient) {
			f.Errorf("while Gardener is down, the existence of a Shoot is unknown: got %v", err)
		}
	})
}

func TestRemovalOfAnUnknownRuntime(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		creation, runtimeID := f.provision("tenant", "", "c-first")

		for reason, call := range map[string][2]string{
			"runtime of another tenant": {"other", runtimeID}, "no such runtime": {"tenant", "unknown"},
		} {
			_, err := f.service.Deprovision(f.Context(), caller(call[0], "key"), call[1])
			if known := failure.Of(err); !failure.Is(err, failure.NotFound) || known.Reason != failure.ReasonNotFound {
				f.Errorf("%s: got %v because of %q", reason, err, known.Reason)
			}
		}

		if f.state(creation) != process.Pending || f.count("operations") != 1 || f.count("idempotency_keys") != 0 {
			f.Errorf("the rejected calls changed rows: the creation's state is %s", f.state(creation))
		}
	})
}
