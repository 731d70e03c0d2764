package orders_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

func TestRemovalCancelsTheCreation(t *testing.T) {
	cases := map[string]struct {
		reason  string
		prepare func(b *bench, creation string)
		want    process.State
	}{
		"pending":   {"a creation that has not started is canceled at once", func(*bench, string) {}, process.Canceled},
		"running":   {"a running creation stops at its next safe point", func(b *bench, _ string) { b.begin() }, process.Canceling},
		"succeeded": {"a finished creation stays succeeded", func(b *bench, creation string) { b.finish(creation, process.Succeeded) }, process.Succeeded},
		"failed":    {"a failed creation may have left a cluster", func(b *bench, creation string) { b.finish(creation, process.Failed) }, process.Failed},
	}

	each(t, func(b *bench) {
		for name, c := range cases {
			creation, runtimeID := b.provision("tenant", "", "c-"+name)
			c.prepare(b, creation)

			woken := b.woken.Load()
			removal := b.deprovision("tenant", "", runtimeID)

			if got := b.state(creation); got != c.want {
				b.Errorf("%s: the creation's state is %s, want %s", c.reason, got, c.want)
			}

			if got := b.state(removal); got != process.Pending || b.runtimeOf(removal) != runtimeID {
				b.Errorf("%s: the removal's state is %s, its runtime %s", c.reason, got, b.runtimeOf(removal))
			}

			if b.woken.Load() == woken {
				b.Errorf("%s: the engine was not woken", c.reason)
			}
		}
	})
}

func TestRemovalWaitsForTheCanceledCreation(t *testing.T) {
	each(t, func(b *bench) {
		creation, runtimeID := b.provision("tenant", "", "c-first")
		running := b.begin()[creation]
		removal := b.deprovision("tenant", "", runtimeID)

		if due := b.begin(); len(due) != 0 {
			b.Errorf("while the creation runs, %v is due", due)
		}

		b.end(running, process.Succeeded)

		if got := b.state(creation); got != process.Canceled {
			b.Errorf("the creation ended in state %s", got)
		}

		if _, due := b.begin()[removal]; !due {
			b.Error("the removal is not due")
		}
	})
}

func TestRemovalIsAcceptedOnce(t *testing.T) {
	each(t, func(b *bench) {
		_, runtimeID := b.provision("tenant", "", "c-first")
		first := b.deprovision("tenant", "key-1", runtimeID)

		same := func(reason, key string) {
			b.Helper()

			for range 2 {
				if again := b.deprovision("tenant", key, runtimeID); again != first {
					b.Errorf("%s: got %s, want %s", reason, again, first)
				}
			}
		}

		same("a repeated call", "key-1")
		same("another key while the removal is pending", "key-2")
		same("no key while the removal is pending", "")

		running := b.begin()[first]
		same("another key while the removal runs", "key-3")

		b.end(running, process.Succeeded)
		same("another key after the removal", "key-4")
		same("a repeated call after the removal", "key-2")
		same("a repeated call after the removal", "key-3")

		if operations := b.count("operations"); operations != 2 {
			b.Errorf("there are %d operations, want a creation and a removal", operations)
		}
	})
}

func TestFailedRemovalCanBeRepeated(t *testing.T) {
	each(t, func(b *bench) {
		_, runtimeID := b.provision("tenant", "", "c-first")
		first := b.deprovision("tenant", "key-1", runtimeID)
		b.finish(first, process.Failed)

		if again := b.deprovision("tenant", "key-1", runtimeID); again != first {
			b.Errorf("a repeated call got %s, want the first removal %s", again, first)
		}

		second := b.deprovision("tenant", "key-2", runtimeID)
		if second == first || b.state(second) != process.Pending {
			b.Errorf("a new call got %s (%s), want a new removal", second, b.state(second))
		}
	})
}

func TestConcurrentRemovals(t *testing.T) {
	for name, keyOf := range map[string]func(string) string{
		"one key": func(string) string { return "key" }, "keys": func(caller string) string { return caller }, "no key": func(string) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(b *bench) {
				_, runtimeID := b.provision("tenant", "", "c-first")

				ids, errs := together(func(name string) (string, error) {
					return b.service.Deprovision(b.Context(), caller("tenant", keyOf(name)), runtimeID)
				})

				for i := range ids {
					if errs[i] != nil || ids[i] != ids[0] {
						b.Fatalf("got %v, %v", ids, errs)
					}
				}

				if operations := b.count("operations"); operations != 2 || b.state(ids[0]) != process.Pending {
					b.Errorf("there are %d operations, the removal's state is %s", operations, b.state(ids[0]))
				}
			})
		})
	}
}

func TestRemovalOfAnUnknownRuntime(t *testing.T) {
	each(t, func(b *bench) {
		creation, runtimeID := b.provision("tenant", "", "c-first")

		for reason, call := range map[string][2]string{
			"runtime of another tenant": {"other", runtimeID}, "no such runtime": {"tenant", "unknown"},
		} {
			_, err := b.service.Deprovision(b.Context(), caller(call[0], "key"), call[1])
			if known := failure.Of(err); !failure.Is(err, failure.NotFound) || known.Reason != failure.ReasonNotFound {
				b.Errorf("%s: got %v because of %q", reason, err, known.Reason)
			}
		}

		if b.state(creation) != process.Pending || b.count("operations") != 1 || b.count("idempotency_keys") != 0 {
			b.Errorf("the refused calls changed rows: the creation's state is %s", b.state(creation))
		}
	})
}
