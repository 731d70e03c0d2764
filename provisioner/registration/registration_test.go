package registration_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	simulator "github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
)

func TestRuntimeHasTheIDThatDirectorGives(t *testing.T) {
	each(t, func(b *bench) {
		id, err := b.provision(tenant, "key", "c-first")
		if err != nil || !slices.Equal(b.registered(), []string{id}) {
			b.Fatalf("accepted as %s, %v; registered are %v", id, err, b.registered())
		}

		if labels := b.director.Runtimes()[0].Labels; labels["theirs"] != "kept" || len(labels) != 2 {
			b.Errorf("registered with labels %v", labels)
		}

		again, err := b.provision(tenant, "key", "c-first")
		if err != nil || again != id || len(b.registered()) != 1 {
			b.Errorf("the same order again: %s, %v; registered are %v", again, err, b.registered())
		}
	})
}

func TestRefusedOrdersRegisterNothing(t *testing.T) {
	each(t, func(b *bench) {
		b.refused = failure.New(failure.Invalid, "no cluster can be made of it")

		if _, err := b.provision(tenant, "", "c-first"); !failure.Is(err, failure.Invalid) {
			b.Errorf("got %v", err)
		}

		b.refused = nil

		if _, err := b.provision(tenant, "", "c-first"); err != nil {
			b.Fatal(err)
		}

		registered := b.registered()

		if _, err := b.provision("tenant-2", "", "c-first"); !failure.Is(err, failure.Conflict) {
			b.Errorf("a name that is taken: %v", err)
		}

		if !slices.Equal(b.registered(), registered) || len(registered) != 1 {
			b.Errorf("registered are %v", b.registered())
		}
	})
}

// TestNoLossLeavesASecondRuntime has each call to Director go wrong in turn, and the order sent again as clients do.
func TestNoLossLeavesASecondRuntime(t *testing.T) {
	each(t, func(b *bench) {
		for name, key := range map[string]string{"c-keyed": "key", "c-named": ""} {
			for _, operation := range []string{simulator.TokenOperation, "runtimes", "registerRuntime"} {
				for _, fault := range []simulator.Fault{{Unsent: true}, {Lost: true}, {Code: simulator.InternalError}, {Status: 503}} {
					b.director.RevokeTokens()

					fault.Operation = operation
					b.director.Inject(fault)

					var (
						id  string
						err error
					)

					tries := 0
					for id, err = b.provision(tenant, key, name); err != nil && tries < 3; id, err = b.provision(tenant, key, name) {
						if tries++; !failure.Is(err, failure.Transient) {
							b.Errorf("%s %+v: got %v", operation, fault, err)
						}
					}

					if err != nil || !slices.Equal(b.registered(), []string{id}) {
						b.Fatalf("%s %+v: accepted as %s, %v; registered are %v", operation, fault, id, err, b.registered())
					}

					b.start()
				}
			}
		}
	})
}

// start removes all rows and registrations.
func (b *bench) start() {
	b.Helper()

	for _, id := range b.registered() {
		if err := b.client.Unregister(b.Context(), tenant, id); err != nil {
			b.Fatal(err)
		}
	}

	for _, table := range []string{"runtimes", "registrations", "idempotency_keys", "operations"} {
		if _, err := b.db.Writer().ExecContext(b.Context(), `DELETE FROM `+table); err != nil {
			b.Fatal(err)
		}
	}
}

func TestTriesAtTheSameTimeLeaveOneRuntime(t *testing.T) {
	each(t, func(b *bench) {
		for _, key := range []string{"key", ""} {
			ids := make([]string, 8)

			var tries sync.WaitGroup
			for i := range ids {
				tries.Go(func() {
					var err error
					if ids[i], err = b.provision(tenant, key, "c-first"); err != nil {
						b.Error(err)
					}
				})
			}

			tries.Wait()

			if all := slices.Compact(slices.Clone(ids)); len(all) != 1 || !slices.Equal(b.registered(), all) {
				b.Errorf("with key %q: accepted as %v, registered are %v", key, ids, b.registered())
			}

			b.start()
		}
	})
}

// TestIDOfADeletedRuntimeIsNotUsedAgain has a runtime deprovisioned while Director was switched off, which therefore still knows it.
func TestIDOfADeletedRuntimeIsNotUsedAgain(t *testing.T) {
	each(t, func(b *bench) {
		first, err := b.provision(tenant, "", "c-first")
		if err != nil {
			b.Fatal(err)
		}

		b.end("succeeded")

		if err := b.rows.MarkDeleted(b.Context(), first, b.clock.Now()); err != nil {
			b.Fatal(err)
		}

		second, err := b.provision(tenant, "", "c-first")
		if err != nil || second == first || len(b.registered()) != 2 {
			b.Errorf("ordered again: %s after %s, %v; registered are %v", second, first, err, b.registered())
		}

		b.end("succeeded")
		b.clock.Step(2 * time.Hour)
		b.care()

		if got := b.registered(); !slices.Equal(got, []string{second}) {
			b.Errorf("registered are %v, want %s alone", got, second)
		}
	})
}

func TestWhatIsLeftIsRemoved(t *testing.T) {
	each(t, func(b *bench) {
		id, err := b.provision(tenant, "key", "c-first")
		if err != nil {
			b.Fatal(err)
		}

		labels := b.director.Runtimes()[0].Labels

		// A replica that was frozen registers once more; another one dies before its order is accepted, and nobody sends that again.
		for _, left := range []string{"late", "never-accepted"} {
			if left == "never-accepted" {
				b.director.Inject(simulator.Fault{Operation: "registerRuntime", Lost: true})

				if _, err := b.provision(tenant, "another", left); !failure.Is(err, failure.Transient) {
					b.Fatal(err)
				}
			} else if err := b.registerAgain(left, labels); err != nil {
				b.Fatal(err)
			}
		}

		b.care()

		if got := b.registered(); len(got) != 3 {
			b.Errorf("what may still be tried is kept for a while; registered are %v", got)
		}

		b.clock.Step(time.Hour + time.Minute)
		b.care()

		if got := b.registered(); len(got) != 2 || b.unsettled() != 1 {
			b.Errorf("what runs is not settled, what was never accepted is gone: registered are %v, %d unsettled", got, b.unsettled())
		}

		b.end("succeeded")
		b.care()

		if diff := cmp.Diff([]string{id}, b.registered()); diff != "" || b.unsettled() != 0 {
			b.Errorf("%d unsettled, -want +got:\n%s", b.unsettled(), diff)
		}
	})
}

// TestRemovalAndANewTryDoNotMeet makes Director unavailable during the removal of registrations, so that the removal is still in progress.
func TestRemovalAndANewTryDoNotMeet(t *testing.T) {
	each(t, func(b *bench) {
		b.director.Inject(simulator.Fault{Operation: "registerRuntime", Lost: true})

		if _, err := b.provision(tenant, "key", "c-first"); !failure.Is(err, failure.Transient) {
			b.Fatal(err)
		}

		b.clock.Step(2 * time.Hour)
		b.director.Inject(simulator.Fault{Operation: "unregisterRuntime", Status: 503})

		if err := b.caretaker.Care(b.Context()); !failure.Is(err, failure.Transient) {
			b.Fatalf("Director is away: %v", err)
		}

		if _, err := b.provision(tenant, "key", "c-first"); failure.Of(err).Reason != failure.ReasonConflict || !failure.Is(err, failure.Transient) {
			b.Errorf("a try while what is left is being removed: %v", err)
		}

		b.clock.Step(3 * time.Minute)

		id, err := b.provision(tenant, "key", "c-first")
		if err != nil || !slices.Equal(b.registered(), []string{id}) {
			b.Errorf("a try after that: %s, %v; registered are %v", id, err, b.registered())
		}
	})
}

func TestDirectorIsToldOfFailuresUntilItKnows(t *testing.T) {
	each(t, func(b *bench) {
		if _, err := b.provision(tenant, "key", "c-first"); err != nil {
			b.Fatal(err)
		}

		b.end("failed")
		b.director.Inject(simulator.Fault{Operation: "updateRuntime", Status: 503})

		if err := b.caretaker.Care(b.Context()); !failure.Is(err, failure.Transient) {
			b.Errorf("Director is away: %v", err)
		}

		b.care()

		if told := b.director.Runtimes()[0]; told.Condition != "FAILED" || told.Labels["theirs"] != "kept" {
			b.Errorf("Director shows %+v", told)
		}

		calls := len(b.director.Calls())
		b.care()

		if again := b.director.Calls()[calls:]; len(again) > 0 {
			b.Errorf("Director knows already and is called for %v", again)
		}

		// Ordered again, it fails again, after somebody has unregistered it by hand.
		id, err := b.provision(tenant, "key-2", "c-first")
		if err != nil || !slices.Equal(b.registered(), []string{id}) {
			b.Fatalf("ordered anew: %s, %v; registered are %v", id, err, b.registered())
		}

		if err := b.client.Unregister(b.Context(), tenant, id); err != nil {
			b.Fatal(err)
		}

		b.end("failed")
		b.care()
		b.clock.Step(2 * time.Hour)
		b.care()

		if left := b.unsettled(); left != 0 {
			b.Errorf("%d registrations are never settled", left)
		}
	})
}

func TestTenantThatIsGoneHasNothingLeft(t *testing.T) {
	each(t, func(b *bench) {
		b.director.Inject(simulator.Fault{Operation: "registerRuntime", Lost: true})

		if _, err := b.provision(tenant, "key", "c-first"); err == nil {
			b.Fatal("the answer is not lost")
		}

		b.director.Forget(tenant)
		b.clock.Step(2 * time.Hour)
		b.care()

		if left := b.unsettled(); left != 0 {
			b.Errorf("%d registrations are never settled", left)
		}
	})
}
