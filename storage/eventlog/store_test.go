package eventlog_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestEventsOfOperations(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		for _, state := range []process.State{process.Succeeded, process.Failed, process.Canceled} {
			held := storagetest.Hold(f.T, f.db, f.operations, environment.KindUpdate, string(state))
			held.State, held.FinishedAt = state, now.Add(time.Minute)

			if state == process.Failed {
				held.Problem = process.Problem{Message: "a secret text", Reason: "quota", Component: "gardener"}
			}

			if _, err := f.operations.Save(f.Context(), process.Progress{Record: held, Now: now}); err != nil {
				f.Fatal(err)
			}

			late := held
			late.Lease.Fence--

			if _, err := f.operations.Save(f.Context(), process.Progress{Record: late, Now: now}); !errors.Is(err, process.ErrLeaseLost) {
				f.Fatal(err)
			}
		}

		ended := []string{}
		for _, event := range f.published(eventlog.Filter{Types: []eventlog.Type{eventlog.OperationSucceeded, eventlog.OperationFailed, eventlog.OperationCanceled}}, 0) {
			ended = append(ended, text(event))
		}

		if diff := cmp.Diff([]string{
			"2 | operation.succeeded | succeeded | update of succeeded | update | 03:05:05",
			"4 | operation.failed | failed | update of failed | update | quota | gardener | 03:05:05",
			"6 | operation.canceled | canceled | update of canceled | update | 03:05:05",
		}, ended); diff != "" {
			f.Errorf("-want +got\n%s", diff)
		}

		f.accept(operation("a bind", environment.KindBind, environment.BindingKey("i/1", "b"), "account"))
		f.accept(operation("a cleanup", environment.KindCleanup, environment.LeftoverKey("i/1", "left"), "account"))
		f.accept(operation("a conductor", environment.KindOrchestrate, environment.OrchestrationKey("o"), ""))
		f.tx(func(tx storage.Tx) error {
			_, err := f.operations.CancelOne(f.Context(), tx, "a cleanup", "a test", now.Add(time.Minute))

			return err
		})
		f.want("bindings and leftovers belong to an instance, conductors are no events", eventlog.Filter{}, 6,
			"7 | operation.accepted | i/1 | b | a bind | bind | account | 03:04:05",
			"8 | operation.accepted | i/1 | a cleanup | cleanup | account | 03:04:05",
			"9 | operation.canceled | i/1 | a cleanup | cleanup | account | 03:05:05")
	})
}

func TestEventsOfInstances(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		one := instance("one")
		update := func(change func()) {
			f.Helper()
			change()
			f.tx(func(tx storage.Tx) error {
				if _, err := f.instances.Touch(f.Context(), tx, one.ID, now.Add(time.Minute)); err != nil {
					return err
				}

				return f.instances.Update(f.Context(), tx, one)
			})
		}

		f.tx(func(tx storage.Tx) error { return storagetest.Insert(f.Context(), tx, f.instances, one) })
		update(func() { one.PlanName = "gcp" })
		update(func() { one.Suspended = true })
		update(func() { one.ExpiredAt = now })
		update(func() { one.Suspended, one.ExpiredAt = false, time.Time{} })
		update(func() { one.Suspended, one.ExpiredAt = true, now })
		f.tx(func(tx storage.Tx) error { return f.instances.SetPlatforms(f.Context(), tx, one) })

		held := storagetest.Hold(f.T, f.db, f.operations, environment.KindDeprovision, one.ID)
		if err := f.instances.SetRuntime(f.Context(), held, one, "runtime"); err != nil {
			f.Fatal(err)
		}

		f.tx(func(tx storage.Tx) error { return f.instances.Delete(f.Context(), tx, one) })

		types := eventlog.Types()[4:10]
		f.want("each change once", eventlog.Filter{Types: types}, 0,
			"1 | instance.created | one | account | aws | eu-central-1 | 03:04:05",
			"2 | instance.updated | one | account | gcp | eu-central-1 | 03:05:05",
			"3 | instance.suspended | one | account | gcp | eu-central-1 | 03:05:05",
			"4 | instance.expired | one | account | gcp | eu-central-1 | 03:05:05",
			"5 | instance.resumed | one | account | gcp | eu-central-1 | 03:05:05",
			"6 | instance.expired | one | account | gcp | eu-central-1 | 03:05:05",
			"7 | instance.suspended | one | account | gcp | eu-central-1 | 03:05:05",
			"8 | instance.updated | one | account | gcp | eu-central-1 | 03:05:05",
			"10 | instance.deleted | one | account | gcp | eu-central-1 | 04:04:05")
	})
}

func TestEventsOfOrchestrations(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		add := func(id string, state environment.OrchestrationState) {
			f.tx(func(tx storage.Tx) error {
				return f.orchestrations.Insert(f.Context(), tx, environment.Orchestration{
					ID: id, Kind: environment.KindUpgradeKyma, State: state, CreatedAt: now, UpdatedAt: now, OrderedBy: "somebody",
				})
			})
		}
		set := func(id string, states ...environment.OrchestrationState) {
			for _, state := range states {
				for range 2 {
					f.tx(func(tx storage.Tx) error {
						return f.orchestrations.SetState(f.Context(), tx, id, state, "", now.Add(time.Minute))
					})
				}
			}
		}

		add("plan", environment.OrchestrationPlanned)
		add("expired", environment.OrchestrationPlanned)
		add("dropped", environment.OrchestrationPlanned)
		add("one", environment.OrchestrationPending)
		set("expired", environment.OrchestrationExpired)
		set("dropped", environment.OrchestrationCanceled)
		set("plan", environment.OrchestrationInProgress)
		set("one", environment.OrchestrationInProgress, environment.OrchestrationGated, environment.OrchestrationInProgress)
		f.tx(func(tx storage.Tx) error {
			return f.orchestrations.SetWave(f.Context(), tx, "one", 2, time.Time{}, now.Add(2*time.Minute))
		})
		set("one", environment.OrchestrationFailed, environment.OrchestrationRetrying, environment.OrchestrationInProgress,
			environment.OrchestrationCanceling, environment.OrchestrationCanceled)

		f.want("each change once, and nothing of plans", eventlog.Filter{}, 0,
			"1 | orchestration.started | one | upgradeKyma | pending | 03:04:05 | wave 1",
			"2 | orchestration.started | plan | upgradeKyma | in progress | 03:05:05 | wave 1",
			"3 | orchestration.paused | one | upgradeKyma | gated | 03:05:05 | wave 1",
			"4 | orchestration.resumed | one | upgradeKyma | in progress | 03:05:05 | wave 1",
			"5 | orchestration.wave | one | upgradeKyma | in progress | 03:06:05 | wave 2",
			"6 | orchestration.finished | one | upgradeKyma | failed | 03:05:05 | wave 2",
			"7 | orchestration.resumed | one | upgradeKyma | retrying | 03:05:05 | wave 2",
			"8 | orchestration.finished | one | upgradeKyma | canceled | 03:05:05 | wave 2")
	})
}

// TestRollback writes an event and rolls back.
func TestRollback(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		canceled := errors.New("rolled back")

		err := f.db.InTx(f.Context(), func(tx storage.Tx) error {
			return errors.Join(f.operations.Accept(f.Context(), tx, operation("one", environment.KindUpdate, "i", "account")), canceled)
		})
		if !errors.Is(err, canceled) {
			f.Fatal(err)
		}

		f.want("the change was undone", eventlog.Filter{}, 0)
	})
}

func TestReadWithFilters(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		for _, id := range []string{"one", "two", "three", "four", "five"} {
			account := "a"
			if id == "two" {
				account = "b"
			}

			f.accept(operation("operation of "+id, environment.KindUpdate, id, account))
		}

		const four = "4 | operation.accepted | four | operation of four | update | a | 03:04:05"

		f.want("an instance", eventlog.Filter{InstanceID: "four"}, 0, four)
		f.want("an account", eventlog.Filter{Account: "b"}, 0, "2 | operation.accepted | two | operation of two | update | b | 03:04:05")
		f.want("another type", eventlog.Filter{Types: []eventlog.Type{eventlog.InstanceDeleted}}, 0)
		f.want("a position", eventlog.Filter{Account: "a"}, 3, four, "5 | operation.accepted | five | operation of five | update | a | 03:04:05")
		f.want("the end", eventlog.Filter{}, 5)
		f.want("a position of the future", eventlog.Filter{}, 99)
	})
}
