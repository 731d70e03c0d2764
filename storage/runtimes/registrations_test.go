package runtimes_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

const hold = 2 * time.Minute

// registrations is a fixture that also contains the operations store, because registrations refer to operations.
type registrations struct {
	fixture

	operations *operations.Store
}

func eachWithOperations(t *testing.T, test func(b registrations)) {
	t.Helper()

	each(t, func(b fixture) {
		store, err := operations.Open(t.Context(), b.db, storagetest.Keys(t))
		if err != nil {
			t.Fatal(err)
		}

		test(registrations{fixture: b, operations: store})
	})
}

// intend records the intent of an order at the given time after start. It reports whether the order may be registered.
func (b registrations) intend(label string, after time.Duration) bool {
	b.Helper()

	free, err := b.store.IntendRegistration(b.Context(), "tenant", label, start.Add(after))
	if err != nil {
		b.Fatal(err)
	}

	return free
}

// accept accepts the order with an operation in the given state.
func (b registrations) accept(label, operationID string, state process.State) runtimes.Registration {
	b.Helper()

	registration := runtimes.Registration{Tenant: "tenant", Label: label, RuntimeID: "runtime of " + label, OperationID: operationID}

	err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
		if err := b.operations.Accept(b.Context(), tx, process.New{
			ID: operationID, Kind: "kind", InstanceID: operationID, Payload: []byte("{}"), At: start,
		}); err != nil {
			return err
		}

		_, err := storage.Exec(b.Context(), tx, `UPDATE operations SET state = ?, finished_at = ? WHERE id = ?`,
			string(state), storage.At(map[bool]time.Time{true: start}[state == process.Failed || state == process.Succeeded]), operationID)
		if err != nil {
			return err
		}

		return b.store.AcceptRegistration(b.Context(), tx, registration, start)
	})
	if err != nil {
		b.Fatal(err)
	}

	return registration
}

// reserve reserves the next registration to settle, at the given time after start. It reports false if no registration qualifies.
func (b registrations) reserve(after time.Duration) (runtimes.Registration, bool) {
	b.Helper()

	now := start.Add(after)

	held, err := b.store.HoldRegistration(b.Context(), now.Add(-time.Hour), now, now.Add(hold))
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		b.Fatal(err)
	}

	return held, err == nil
}

func TestRegistrationIsSettledOnce(t *testing.T) {
	eachWithOperations(t, func(b registrations) {
		if !b.intend("one", 0) || !b.intend("one", time.Minute) {
			b.Fatal("a repeated order may be registered again")
		}

		if got, found := b.reserve(time.Hour); found {
			b.Errorf("%v was reserved although it was just touched", got)
		}

		const late = 2 * time.Hour

		first, found := b.reserve(late)
		if want := (runtimes.Registration{Tenant: "tenant", Label: "one", HeldUntil: storage.At(start.Add(late + hold))}); !found || !cmp.Equal(want, first) {
			b.Fatalf("held %v, %t", first, found)
		}

		if got, found := b.reserve(late + time.Second); found || b.intend("one", late+time.Second) {
			b.Errorf("a held registration was reserved again: %v", got)
		}

		second, found := b.reserve(late + hold + time.Second)
		if !found {
			b.Fatal("a hold must expire, because its replica may have died")
		}

		for _, settled := range []runtimes.Registration{first, second} {
			if err := b.store.SettleRegistration(b.Context(), settled); err != nil {
				b.Fatal(err)
			}

			if left := b.count(); left != map[bool]int{true: 1}[settled == first] {
				b.Errorf("%d rows are left, want 0", left)
			}
		}
	})
}

// TestRepeatedOrderVoidsAHold checks that a caretaker that holds the registration of a failed order cannot remove it after the
// order was repeated. Otherwise a failure of the repeated order would not be reported to Director.
func TestRepeatedOrderVoidsAHold(t *testing.T) {
	eachWithOperations(t, func(b registrations) {
		b.intend("one", 0)

		held, found := b.reserve(2 * time.Hour)
		if !found {
			b.Fatal("got no registration")
		}

		again := b.accept("one", "op-1", process.Failed)

		if err := b.store.SettleRegistration(b.Context(), held); err != nil {
			b.Fatal(err)
		}

		unreported, err := b.store.UnreportedFailures(b.Context(), 10)
		if diff := cmp.Diff([]runtimes.Registration{again}, unreported); err != nil || diff != "" {
			b.Errorf("unreported failures: %v, -want +got:\n%s", err, diff)
		}
	})
}

func (b registrations) count() int {
	b.Helper()

	count, err := storage.Get[int](b.Context(), b.store.Reader(), `SELECT count(*) FROM registrations`)
	if err != nil {
		b.Fatal(err)
	}

	return count
}

func TestRegistrationsOfOperations(t *testing.T) {
	eachWithOperations(t, func(b registrations) {
		b.intend("failed", 0)
		failed := b.accept("failed", "op-1", process.Failed)
		b.accept("running", "op-2", process.InProgress)
		b.accept("succeeded", "op-3", process.Succeeded)

		unreported, err := b.store.UnreportedFailures(b.Context(), 10)
		if diff := cmp.Diff([]runtimes.Registration{failed}, unreported); err != nil || diff != "" {
			b.Errorf("unreported failures: %v, -want +got:\n%s", err, diff)
		}

		if got, _ := b.reserve(2 * time.Hour); got.Label != "succeeded" {
			b.Errorf("held %v, but registrations of running or unreported operations must not be settled", got)
		}

		older := failed
		older.OperationID = "op-0"

		for _, reported := range []struct {
			registration runtimes.Registration
			left         int
		}{{older, 1}, {failed, 0}} {
			if err := b.store.FailureReported(b.Context(), reported.registration); err != nil {
				b.Fatal(err)
			}

			if unreported, err := b.store.UnreportedFailures(b.Context(), 10); err != nil || len(unreported) != reported.left {
				b.Errorf("reported %s: %v, %v", reported.registration.OperationID, unreported, err)
			}
		}

		if got, _ := b.reserve(2 * time.Hour); got.Label != "failed" {
			b.Errorf("held %v, want the reported registration", got)
		}

		again := b.accept("failed", "op-4", process.Failed)

		if unreported, err := b.store.UnreportedFailures(b.Context(), 10); err != nil || !cmp.Equal(unreported[0].OperationID, again.OperationID) {
			b.Errorf("the new failure of a repeated order must be unreported: %v, %v", unreported, err)
		}
	})
}
