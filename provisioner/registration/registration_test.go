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

func TestRuntimeIDComesFromDirector(t *testing.T) {
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
		b.refused = failure.New(failure.Invalid, "no such region")

		if _, err := b.provision(tenant, "", "c-first"); !failure.Is(err, failure.Invalid) {
			b.Errorf("got %v", err)
		}

		b.refused = nil

		if _, err := b.provision(tenant, "", "c-first"); err != nil {
			b.Fatal(err)
		}

		registered := b.registered()

		if _, err := b.provision("tenant-2", "", "c-first"); !failure.Is(err, failure.Conflict) {
			b.Errorf("a taken name: got %v", err)
		}

		if !slices.Equal(b.registered(), registered) || len(registered) != 1 {
			b.Errorf("registered are %v", b.registered())
		}
	})
}

// TestRetryAfterFaultMakesNoSecondRuntime injects a fault into each call to Director in turn, and sends the order again as
// clients do.
func TestRetryAfterFaultMakesNoSecondRuntime(t *testing.T) {
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

func TestConcurrentAttemptsRegisterOneRuntime(t *testing.T) {
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

// TestIDOfADeletedRuntimeIsNotReused deprovisions a runtime without Director, which therefore still lists it.
func TestIDOfADeletedRuntimeIsNotReused(t *testing.T) {
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
			b.Errorf("registered are %v, want only %s", got, second)
		}
	})
}

func TestCaretakerRemovesLeftovers(t *testing.T) {
	each(t, func(b *bench) {
		id, err := b.provision(tenant, "key", "c-first")
		if err != nil {
			b.Fatal(err)
		}

		labels := b.director.Runtimes()[0].Labels

		// A frozen replica registers once more. Another replica dies before it accepts its order, and the order is not sent
		// again.
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
			b.Errorf("the caretaker must keep recent registrations, which may be retried; registered are %v", got)
		}

		b.clock.Step(time.Hour + time.Minute)
		b.care()

		if got := b.registered(); len(got) != 2 || b.unsettled() != 1 {
			b.Errorf("the running order must stay, the order that was never accepted must go: registered are %v, %d unsettled", got, b.unsettled())
		}

		b.end("succeeded")
		b.care()

		if diff := cmp.Diff([]string{id}, b.registered()); diff != "" || b.unsettled() != 0 {
			b.Errorf("%d unsettled, -want +got:\n%s", b.unsettled(), diff)
		}
	})
}

// TestAttemptDuringTheRemovalIsRefused makes Director unavailable while registrations are removed, so that the removal stays in
// progress.
func TestAttemptDuringTheRemovalIsRefused(t *testing.T) {
	each(t, func(b *bench) {
		b.director.Inject(simulator.Fault{Operation: "registerRuntime", Lost: true})

		if _, err := b.provision(tenant, "key", "c-first"); !failure.Is(err, failure.Transient) {
			b.Fatal(err)
		}

		b.clock.Step(2 * time.Hour)
		b.director.Inject(simulator.Fault{Operation: "unregisterRuntime", Status: 503})

		if err := b.caretaker.Care(b.Context()); !failure.Is(err, failure.Transient) {
			b.Fatalf("Director is unavailable: got %v", err)
		}

		if _, err := b.provision(tenant, "key", "c-first"); failure.Of(err).Reason != failure.ReasonConflict || !failure.Is(err, failure.Transient) {
			b.Errorf("an attempt during the removal: got %v", err)
		}

		b.clock.Step(3 * time.Minute)

		id, err := b.provision(tenant, "key", "c-first")
		if err != nil || !slices.Equal(b.registered(), []string{id}) {
			b.Errorf("an attempt after the removal: %s, %v; registered are %v", id, err, b.registered())
		}
	})
}

func TestFailuresAreReportedUntilDirectorAccepts(t *testing.T) {
	each(t, func(b *bench) {
		if _, err := b.provision(tenant, "key", "c-first"); err != nil {
			b.Fatal(err)
		}

		b.end("failed")
		b.director.Inject(simulator.Fault{Operation: "updateRuntime", Status: 503})

		if err := b.caretaker.Care(b.Context()); !failure.Is(err, failure.Transient) {
			b.Errorf("Director is unavailable: got %v", err)
		}

		b.care()

		if shown := b.director.Runtimes()[0]; shown.Condition != "FAILED" || shown.Labels["theirs"] != "kept" {
			b.Errorf("Director shows %+v", shown)
		}

		calls := len(b.director.Calls())
		b.care()

		if again := b.director.Calls()[calls:]; len(again) > 0 {
			b.Errorf("the failure was reported already, but Director is called: %v", again)
		}

		// The repeated order fails again, after an operator has unregistered its runtime.
		id, err := b.provision(tenant, "key-2", "c-first")
		if err != nil || !slices.Equal(b.registered(), []string{id}) {
			b.Fatalf("ordered again: %s, %v; registered are %v", id, err, b.registered())
		}

		if err := b.client.Unregister(b.Context(), tenant, id); err != nil {
			b.Fatal(err)
		}

		b.end("failed")
		b.care()
		b.clock.Step(2 * time.Hour)
		b.care()

		if left := b.unsettled(); left != 0 {
			b.Errorf("%d registrations are left", left)
		}
	})
}

func TestRegistrationOfADeletedTenantIsSettled(t *testing.T) {
	each(t, func(b *bench) {
		b.director.Inject(simulator.Fault{Operation: "registerRuntime", Lost: true})

		if _, err := b.provision(tenant, "key", "c-first"); err == nil {
			b.Fatal("the injected fault had no effect")
		}

		b.director.Forget(tenant)
		b.clock.Step(2 * time.Hour)
		b.care()

		if left := b.unsettled(); left != 0 {
			b.Errorf("%d registrations are left", left)
		}
	})
}
