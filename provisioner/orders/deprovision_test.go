package orders_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

func TestRemovalCancelsWhatRuns(t *testing.T) {
	cases := map[string]struct {
		reason  string
		prepare func(b *bench, creation string)
		want    process.State
	}{
		"pending":   {"what has not begun never does", func(*bench, string) {}, process.Canceled},
		"running":   {"what runs stops at its next safe point", func(b *bench, _ string) { b.begin() }, process.Canceling},
		"succeeded": {"what is done stays so", func(b *bench, creation string) { b.finish(creation, process.Succeeded) }, process.Succeeded},
		"failed":    {"a cluster that half exists is removed too", func(b *bench, creation string) { b.finish(creation, process.Failed) }, process.Failed},
	}

	each(t, func(b *bench) {
		for name, c := range cases {
			creation, runtimeID := b.provision("tenant", "", "c-"+name)
			c.prepare(b, creation)

			woken := b.woken.Load()
			removal := b.deprovision("tenant", "", runtimeID)

			if got := b.state(creation); got != c.want {
				b.Errorf("%s: the creation is %s, want %s", c.reason, got, c.want)
			}

			if got := b.state(removal); got != process.Pending || b.runtimeOf(removal) != runtimeID {
				b.Errorf("%s: the removal is %s, of %s", c.reason, got, b.runtimeOf(removal))
			}

			if b.woken.Load() == woken {
				b.Errorf("%s: the engine was not woken", c.reason)
			}
		}
	})
}

func TestRemovalWaitsForWhatIsCanceled(t *testing.T) {
	each(t, func(b *bench) {
		creation, runtimeID := b.provision("tenant", "", "c-first")
		running := b.begin()[creation]
		removal := b.deprovision("tenant", "", runtimeID)

		if due := b.begin(); len(due) != 0 {
			b.Errorf("while the creation runs, due is %v", due)
		}

		b.end(running, process.Succeeded)

		if got := b.state(creation); got != process.Canceled {
			b.Errorf("the creation ended as %s", got)
		}

		if _, due := b.begin()[removal]; !due {
			b.Error("the removal is not due")
		}
	})
}

func TestThereIsOneRemoval(t *testing.T) {
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

		same("the call is sent again", "key-1")
		same("somebody else asks while the removal is pending", "key-2")
		same("without a key it is the same", "")

		running := b.begin()[first]
		same("the removal runs", "key-3")

		b.end(running, process.Succeeded)
		same("it is removed", "key-4")
		same("what was answered once is answered again", "key-2")
		same("what was answered once is answered again", "key-3")

		if operations := b.count("operations"); operations != 2 {
			b.Errorf("there are %d operations, want a creation and a removal", operations)
		}
	})
}

func TestRemovalThatFailedIsTriedAgain(t *testing.T) {
	each(t, func(b *bench) {
		_, runtimeID := b.provision("tenant", "", "c-first")
		first := b.deprovision("tenant", "key-1", runtimeID)
		b.finish(first, process.Failed)

		if again := b.deprovision("tenant", "key-1", runtimeID); again != first {
			b.Errorf("a call that is sent again got %s, want the removal that it made, %s", again, first)
		}

		second := b.deprovision("tenant", "key-2", runtimeID)
		if second == first || b.state(second) != process.Pending {
			b.Errorf("a new call got %s (%s), want a new removal", second, b.state(second))
		}
	})
}

func TestRemovalByManyAtTheSameTime(t *testing.T) {
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
					b.Errorf("there are %d operations, the removal is %s", operations, b.state(ids[0]))
				}
			})
		})
	}
}

func TestRemovalOfARuntimeThatIsNotTheCallers(t *testing.T) {
	each(t, func(b *bench) {
		creation, runtimeID := b.provision("tenant", "", "c-first")

		for reason, call := range map[string][2]string{
			"runtimes of others do not exist": {"stranger", runtimeID}, "there is none": {"tenant", "unknown"},
		} {
			_, err := b.service.Deprovision(b.Context(), caller(call[0], "key"), call[1])
			if known := failure.Of(err); !failure.Is(err, failure.NotFound) || known.Reason != failure.ReasonNotFound {
				b.Errorf("%s: got %v because of %q", reason, err, known.Reason)
			}
		}

		if b.state(creation) != process.Pending || b.count("operations") != 1 || b.count("idempotency_keys") != 0 {
			b.Errorf("the refused calls left something behind: the creation is %s", b.state(creation))
		}
	})
}
