package registration_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	simulator "github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/storage"
)

func TestRuntimeIDComesFromDirector(t *testing.T) {
	each(t, func(f *fixture) {
		id, err := f.provision(tenant, "key", "c-first")
		if err != nil || !slices.Equal(f.registered(), []string{id}) {
			f.Fatalf("accepted as %s, %v; registered are %v", id, err, f.registered())
		}

		if labels := f.director.Runtimes()[0].Labels; labels["theirs"] != "kept" || len(labels) != 2 {
			f.Errorf("registered with labels %v", labels)
		}

		again, err := f.provision(tenant, "key", "c-first")
		if err != nil || again != id || len(f.registered()) != 1 {
			f.Errorf("the same order again: %s, %v; registered are %v", again, err, f.registered())
		}
	})
}

func TestRefusedOrdersRegisterNothing(t *testing.T) {
	each(t, func(f *fixture) {
		f.refused = failure.New(failure.Invalid, "no such region")

		if _, err := f.provision(tenant, "", "c-first"); !failure.Is(err, failure.Invalid) {
			f.Errorf("got %v", err)
		}

		f.refused = nil

		if _, err := f.provision(tenant, "", "c-first"); err != nil {
			f.Fatal(err)
		}

		registered := f.registered()

		if _, err := f.provision("tenant-2", "", "c-first"); !failure.Is(err, failure.Conflict) {
			f.Errorf("a name that is in use: got %v", err)
		}

		if !slices.Equal(f.registered(), registered) || len(registered) != 1 {
			f.Errorf("registered are %v", f.registered())
		}
	})
}

// TestRetryAfterFaultMakesNoSecondRuntime injects faults into each call to Director, and then repeats the order, as clients do.
// Director must have exactly one runtime afterwards.
func TestRetryAfterFaultMakesNoSecondRuntime(t *testing.T) {
	each(t, func(f *fixture) {
		for name, key := range map[string]string{"c-keyed": "key", "c-named": ""} {
			for _, operation := range []string{simulator.TokenOperation, "runtimes", "registerRuntime"} {
				for _, fault := range []simulator.Fault{{Unsent: true}, {Lost: true}, {Body: simulator.Rejection(simulator.InternalError)}, {Status: 503}} {
					f.director.RevokeTokens()

					fault.Operation = operation
					f.director.Inject(fault)

					var (
						id  string
						err error
					)

					tries := 0
					for id, err = f.provision(tenant, key, name); err != nil && tries < 3; id, err = f.provision(tenant, key, name) {
						if tries++; !failure.Is(err, failure.Transient) {
							f.Errorf("%s %+v: got %v", operation, fault, err)
						}
					}

					if err != nil || !slices.Equal(f.registered(), []string{id}) {
						f.Fatalf("%s %+v: accepted as %s, %v; registered are %v", operation, fault, id, err, f.registered())
					}

					f.start()
				}
			}
		}
	})
}

// start deletes all rows and registrations, so that each case starts with an empty state.
func (f *fixture) start() {
	f.Helper()

	for _, id := range f.registered() {
		if err := f.client.Unregister(f.Context(), tenant, id); err != nil {
			f.Fatal(err)
		}
	}

	for _, table := range []string{"runtimes", "registrations", "idempotency_keys", "operations"} {
		if _, err := f.db.Writer().ExecContext(f.Context(), `DELETE FROM `+table); err != nil {
			f.Fatal(err)
		}
	}
}

func TestConcurrentAttemptsRegisterOneRuntime(t *testing.T) {
	each(t, func(f *fixture) {
		for _, key := range []string{"key", ""} {
			ids := make([]string, 8)

			var tries sync.WaitGroup
			for i := range ids {
				tries.Go(func() {
					var err error
					if ids[i], err = f.provision(tenant, key, "c-first"); err != nil {
						f.Error(err)
					}
				})
			}

			tries.Wait()

			if all := slices.Compact(slices.Clone(ids)); len(all) != 1 || !slices.Equal(f.registered(), all) {
				f.Errorf("with key %q: accepted as %v, registered are %v", key, ids, f.registered())
			}

			f.start()
		}
	})
}

// TestIDOfADeletedRuntimeIsNotReused deletes a runtime without unregistering it, so Director still lists the runtime. A new
// order with the same name must get a new ID.
func TestIDOfADeletedRuntimeIsNotReused(t *testing.T) {
	each(t, func(f *fixture) {
		first, err := f.provision(tenant, "", "c-first")
		if err != nil {
			f.Fatal(err)
		}

		f.end("succeeded")

		if err := f.rows.MarkDeleted(f.Context(), first, f.clock.Now()); err != nil {
			f.Fatal(err)
		}

		second, err := f.provision(tenant, "", "c-first")
		if err != nil || second == first || len(f.registered()) != 2 {
			f.Errorf("ordered again: %s after %s, %v; registered are %v", second, first, err, f.registered())
		}

		f.end("succeeded")
		f.clock.Step(2 * time.Hour)
		f.care()

		if got := f.registered(); !slices.Equal(got, []string{second}) {
			f.Errorf("registered are %v, want only %s", got, second)
		}
	})
}

func TestCaretakerRemovesLeftovers(t *testing.T) {
	each(t, func(f *fixture) {
		id, err := f.provision(tenant, "key", "c-first")
		if err != nil {
			f.Fatal(err)
		}

		labels := f.director.Runtimes()[0].Labels

		// In the case "late", a paused replica registers the runtime a second time. In the case "never-accepted", the response to the
		// registration is lost, and the client does not repeat its order.
		for _, left := range []string{"late", "never-accepted"} {
			if left == "never-accepted" {
				f.director.Inject(simulator.Fault{Operation: "registerRuntime", Lost: true})

				if _, err := f.provision(tenant, "another", left); !failure.Is(err, failure.Transient) {
					f.Fatal(err)
				}
			} else if err := f.registerAgain(left, labels); err != nil {
				f.Fatal(err)
			}
		}

		f.care()

		if got := f.registered(); len(got) != 3 {
			f.Errorf("the caretaker must not remove recent registrations, because clients may retry their orders; registered are %v", got)
		}

		f.clock.Step(time.Hour + time.Minute)
		f.care()

		if got := f.registered(); len(got) != 2 || f.unsettled() != 1 {
			f.Errorf("the accepted order must keep its registration, and the order that was never accepted must lose it: registered are %v, %d unsettled", got, f.unsettled())
		}

		f.end("succeeded")
		f.care()

		if diff := cmp.Diff([]string{id}, f.registered()); diff != "" || f.unsettled() != 0 {
			f.Errorf("%d unsettled, -want +got:\n%s", f.unsettled(), diff)
		}
	})
}

// TestCaretakerKeepsRuntimesWithAShoot restores the database to a time after the intent and before the order.
func TestCaretakerKeepsRuntimesWithAShoot(t *testing.T) {
	each(t, func(f *fixture) {
		id, err := f.provision(tenant, "key", "c-first")
		if err != nil {
			f.Fatal(err)
		}

		for _, statement := range []string{
			`DELETE FROM runtimes`, `UPDATE registrations SET runtime_id = '', operation_id = ''`,
		} {
			if _, err := storage.Exec(f.Context(), f.db.Writer(), statement); err != nil {
				f.Fatal(err)
			}
		}

		f.cluster = id
		f.clock.Step(time.Hour + time.Minute)
		f.care()

		if diff := cmp.Diff([]string{id}, f.registered()); diff != "" || f.unsettled() != 0 {
			f.Errorf("%d unsettled, -want +got:\n%s", f.unsettled(), diff)
		}
	})
}

// TestAttemptDuringTheRemovalIsRefused interrupts the removal of registrations with an outage of Director. Further attempts at
// the order must be rejected until the removal is complete.
func TestAttemptDuringTheRemovalIsRefused(t *testing.T) {
	each(t, func(f *fixture) {
		f.director.Inject(simulator.Fault{Operation: "registerRuntime", Lost: true})

		if _, err := f.provision(tenant, "key", "c-first"); !failure.Is(err, failure.Transient) {
			f.Fatal(err)
		}

		f.clock.Step(2 * time.Hour)
		f.director.Inject(simulator.Fault{Operation: "unregisterRuntime", Status: 503})

		if err := f.caretaker.Care(f.Context()); !failure.Is(err, failure.Transient) {
			f.Fatalf("Director is unavailable: got %v", err)
		}

		if _, err := f.provision(tenant, "key", "c-first"); failure.Of(err).Reason != failure.ReasonConflict || !failure.Is(err, failure.Transient) {
			f.Errorf("an attempt during the removal: got %v", err)
		}

		f.clock.Step(3 * time.Minute)

		id, err := f.provision(tenant, "key", "c-first")
		if err != nil || !slices.Equal(f.registered(), []string{id}) {
			f.Errorf("an attempt after the removal: %s, %v; registered are %v", id, err, f.registered())
		}
	})
}

func TestFailuresAreReportedUntilDirectorAccepts(t *testing.T) {
	each(t, func(f *fixture) {
		if _, err := f.provision(tenant, "key", "c-first"); err != nil {
			f.Fatal(err)
		}

		f.end("failed")
		f.director.Inject(simulator.Fault{Operation: "updateRuntime", Status: 503})

		if err := f.caretaker.Care(f.Context()); !failure.Is(err, failure.Transient) {
			f.Errorf("Director is unavailable: got %v", err)
		}

		f.care()

		if shown := f.director.Runtimes()[0]; shown.Condition != "FAILED" || shown.Labels["theirs"] != "kept" {
			f.Errorf("Director shows %+v", shown)
		}

		calls := len(f.director.Calls())
		f.care()

		if again := f.director.Calls()[calls:]; len(again) > 0 {
			f.Errorf("a failure that was already reported was reported again: %v", again)
		}

		// The next order fails, too. An operator has unregistered its runtime before the failure is reported.
		id, err := f.provision(tenant, "key-2", "c-first")
		if err != nil || !slices.Equal(f.registered(), []string{id}) {
			f.Fatalf("ordered again: %s, %v; registered are %v", id, err, f.registered())
		}

		if err := f.client.Unregister(f.Context(), tenant, id); err != nil {
			f.Fatal(err)
		}

		f.end("failed")
		f.care()
		f.clock.Step(2 * time.Hour)
		f.care()

		if left := f.unsettled(); left != 0 {
			f.Errorf("%d registrations are left", left)
		}
	})
}

func TestRegistrationOfADeletedTenantIsSettled(t *testing.T) {
	each(t, func(f *fixture) {
		f.director.Inject(simulator.Fault{Operation: "registerRuntime", Lost: true})

		if _, err := f.provision(tenant, "key", "c-first"); err == nil {
			f.Fatal("the injected fault had no effect")
		}

		f.director.Forget(tenant)
		f.clock.Step(2 * time.Hour)
		f.care()

		if left := f.unsettled(); left != 0 {
			f.Errorf("%d registrations are left", left)
		}
	})
}
