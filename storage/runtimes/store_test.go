package runtimes_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC)

type fixture struct {
	*testing.T

	db    *storage.DB
	keys  *secret.Keyring
	store *runtimes.Store
}

func each(t *testing.T, test func(b fixture)) {
	t.Helper()

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()

		keys := storagetest.Keys(t)

		store, err := runtimes.Open(t.Context(), db, keys)
		if err != nil {
			t.Fatal(err)
		}

		test(fixture{T: t, db: db, keys: keys, store: store})
	})
}

func runtime(id, shoot string) runtimes.Runtime {
	return runtimes.Runtime{
		ID: id, Tenant: "tenant", SubAccount: "sub", ShootName: shoot, ProvisionedBy: "operation of " + id,
		Configuration: json.RawMessage(`{"targetSecret":"hush"}`), CreatedAt: start,
	}
}

func (b fixture) insert(runtime runtimes.Runtime) bool {
	b.Helper()

	var inserted bool

	err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
		var err error
		inserted, err = b.store.Insert(b.Context(), tx, runtime)

		return err
	})
	if err != nil {
		b.Fatal(err)
	}

	return inserted
}

func (b fixture) get(id string) runtimes.Runtime {
	b.Helper()

	got, err := b.store.Get(b.Context(), b.store.Reader(), id)
	if err != nil {
		b.Fatal(err)
	}

	return got
}

func (b fixture) markDeleted(id string, at time.Time) {
	b.Helper()

	if err := b.store.MarkDeleted(b.Context(), id, at); err != nil {
		b.Fatal(err)
	}
}

func (b fixture) remember(tenant, key, operationID string) string {
	b.Helper()

	var kept string

	err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
		var err error
		kept, err = b.store.Remember(b.Context(), tx, tenant, key, operationID, start)

		return err
	})
	if err != nil {
		b.Fatal(err)
	}

	return kept
}

func TestRuntimeRoundTrip(t *testing.T) {
	each(t, func(b fixture) {
		if !b.insert(runtime("one", "c-1")) {
			b.Fatal("the insert reports that the name is taken")
		}

		if diff := cmp.Diff(runtime("one", "c-1"), b.get("one")); diff != "" {
			b.Errorf("-want +got:\n%s", diff)
		}

		hashed := runtime("hashed", "c-2")
		hashed.OriginalTenant, hashed.OriginalSubAccount = "-", "a b"
		b.insert(hashed)

		if diff := cmp.Diff(hashed, b.get("hashed")); diff != "" || hashed.Account() != "-" || runtime("one", "c-1").Account() != "tenant" {
			b.Errorf("the account is %q; -want +got:\n%s", hashed.Account(), diff)
		}

		if _, err := b.store.Get(b.Context(), b.db.Reader(), "two"); !errors.Is(err, storage.ErrNotFound) {
			b.Errorf("an unknown runtime: got %v, want ErrNotFound", err)
		}
	})
}

func TestConfigurationIsSealedAndBoundToItsRuntime(t *testing.T) {
	each(t, func(b fixture) {
		b.insert(runtime("one", "c-1"))
		b.insert(runtime("two", "c-2"))

		stored, err := storage.Get[string](b.Context(), b.db.Reader(), `SELECT configuration FROM runtimes WHERE id = 'one'`)
		if err != nil || strings.Contains(stored, "hush") || !strings.HasPrefix(stored, "test:") {
			b.Errorf("the configuration is stored as %q (%v), want an envelope that names its key", stored, err)
		}

		if err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
			_, err := storage.Exec(b.Context(), tx, `UPDATE runtimes SET configuration = ? WHERE id = 'two'`, stored)

			return err
		}); err != nil {
			b.Fatal(err)
		}

		if _, err := b.store.Get(b.Context(), b.db.Reader(), "two"); err == nil || !strings.Contains(err.Error(), "reading runtime two") {
			b.Errorf("a configuration moved to another runtime: got %v", err)
		}
	})
}

func TestShootNameIsTakenUntilTheDeletion(t *testing.T) {
	each(t, func(b fixture) {
		b.insert(runtime("one", "c-1"))

		if b.insert(runtime("two", "c-1")) {
			b.Error("the insert accepts a taken name")
		}

		if _, err := b.store.Get(b.Context(), b.db.Reader(), "two"); !errors.Is(err, storage.ErrNotFound) {
			b.Errorf("the rejected runtime is stored: %v", err)
		}

		gone := start.Add(time.Hour)
		b.markDeleted("one", gone)
		b.markDeleted("one", gone.Add(time.Hour)) // the step may run more than once
		b.markDeleted("none", gone)

		if got := b.get("one"); !got.DeletedAt.Equal(gone) {
			b.Errorf("deleted at %s, want the first time %s", got.DeletedAt, gone)
		}

		if !b.insert(runtime("three", "c-1")) {
			b.Error("the name of a deleted cluster is not free")
		}

		if b.insert(runtime("four", "c-1")) {
			b.Error("the insert accepts a name that is taken again")
		}

		if !b.get("three").DeletedAt.IsZero() {
			b.Error("the new runtime is marked as deleted")
		}
	})
}

func TestIDIsUnique(t *testing.T) {
	each(t, func(b fixture) {
		if !b.insert(runtime("one", "c-1")) || b.insert(runtime("one", "c-2")) {
			b.Error("the insert accepts a taken ID")
		}

		if got := b.get("one"); got.ShootName != "c-1" {
			b.Errorf("the stored runtime has changed: %+v", got)
		}
	})
}

func TestRemember(t *testing.T) {
	each(t, func(b fixture) {
		calls := []struct {
			reason                     string
			tenant, key, operation, to string
		}{
			{"a new key", "tenant", "key-1", "op-1", "op-1"},
			{"a repeated call", "tenant", "key-1", "op-2", "op-1"},
			{"and again", "tenant", "key-1", "op-3", "op-1"},
			{"the same key of another tenant", "other", "key-1", "op-4", "op-4"},
			{"another key", "tenant", "key-2", "op-5", "op-5"},
			{"the first call with a different key", "tenant", "key-2", "op-5", "op-5"},
			{"a call without a key", "tenant", "", "op-6", "op-6"},
			{"another call without a key", "tenant", "", "op-7", "op-7"},
		}

		for _, c := range calls {
			if kept := b.remember(c.tenant, c.key, c.operation); kept != c.to {
				b.Errorf("%s: got %s, want %s", c.reason, kept, c.to)
			}
		}
	})
}

func TestRecall(t *testing.T) {
	each(t, func(b fixture) {
		b.remember("tenant", "key-1", "op-1")
		b.remember("tenant", "", "op-2")

		if got, err := b.store.Recall(b.Context(), b.store.Reader(), "tenant", "key-1"); got != "op-1" || err != nil {
			b.Errorf("got %q, %v", got, err)
		}

		for reason, call := range map[string][2]string{
			"a new key": {"tenant", "key-2"}, "a key of another tenant": {"other", "key-1"}, "no key": {"tenant", ""},
		} {
			if got, err := b.store.Recall(b.Context(), b.store.Reader(), call[0], call[1]); !errors.Is(err, storage.ErrNotFound) {
				b.Errorf("%s: got %q, %v", reason, got, err)
			}
		}
	})
}

func TestLockIsHeldUntilTheEndOfTheTransaction(t *testing.T) {
	each(t, func(b fixture) {
		b.insert(runtime("one", "c-1"))

		var (
			mutex sync.Mutex
			order []string
		)

		note := func(line string) {
			mutex.Lock()
			defer mutex.Unlock()

			order = append(order, line)
		}

		locked, second := make(chan struct{}), make(chan error, 1)

		lock := func(name string, under func()) error {
			return b.db.InTx(b.Context(), func(tx storage.Tx) error {
				if err := b.store.Lock(b.Context(), tx, "one"); err != nil {
					return err
				}

				note(name + " begins")
				under()
				note(name + " ends")

				return nil
			})
		}

		go func() {
			<-locked

			second <- lock("second", func() {})
		}()

		if err := lock("first", func() {
			close(locked)
			b.waitForLock()
		}); err != nil {
			b.Error(err)
		}

		if err := <-second; err != nil {
			b.Error(err)
		}

		if diff := cmp.Diff([]string{"first begins", "first ends", "second begins", "second ends"}, order); diff != "" {
			b.Errorf("-want +got:\n%s", diff)
		}

		if diff := cmp.Diff(runtime("one", "c-1"), b.get("one")); diff != "" {
			b.Errorf("the lock changed the runtime, -want +got:\n%s", diff)
		}
	})
}

// waitForLock waits until another transaction waits for a lock. On SQLite it returns immediately, because write transactions
// are not concurrent.
func (b fixture) waitForLock() {
	b.Helper()

	for b.db.SkipLocked() != "" {
		waiting, err := storage.Get[int](b.Context(), b.db.Reader(),
			`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)
		if err != nil {
			b.Error(err)

			return
		}

		if waiting > 0 {
			return
		}
	}
}

func TestKeyOfAFailedCallIsNotStored(t *testing.T) {
	each(t, func(b fixture) {
		errRefused := errors.New("refused")

		err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
			_, err := b.store.Remember(b.Context(), tx, "tenant", "key-1", "op-1", start)

			return errors.Join(err, errRefused)
		})
		if !errors.Is(err, errRefused) {
			b.Fatal(err)
		}

		if kept := b.remember("tenant", "key-1", "op-2"); kept != "op-2" {
			b.Errorf("got operation %s, but no such operation was accepted", kept)
		}
	})
}

func TestConcurrentCallsWithOneKey(t *testing.T) {
	each(t, func(b fixture) {
		const calls = 8

		var (
			running sync.WaitGroup
			kept    [calls]string
		)

		for i := range calls {
			running.Go(func() { kept[i] = b.remember("tenant", "key-1", fmt.Sprint("op-", i)) })
		}

		running.Wait()

		for _, one := range kept {
			if one != kept[0] || one == "" {
				b.Fatalf("calls with the same key got the operations %v", kept)
			}
		}
	})
}

// TestLateConfiguration checks that a replica that was frozen cannot replace the configuration of a later operation.
func TestLateConfiguration(t *testing.T) {
	each(t, func(b fixture) {
		b.insert(runtime("r-1", "c-first"))

		for _, c := range []struct {
			reason   string
			position int64
			want     string
		}{
			{"the first change", 4, `{"position":4}`},
			{"a later change", 7, `{"position":7}`},
			{"a late write of an earlier change", 4, `{"position":7}`},
			{"a repeated write", 7, `{"position":7}`},
		} {
			changed := runtime("r-1", "c-first")
			changed.Configuration = fmt.Appendf(nil, `{"position":%d}`, c.position)

			if err := b.store.Configured(b.Context(), changed, c.position); err != nil {
				b.Fatal(err)
			}

			if got := string(b.get("r-1").Configuration); got != c.want {
				b.Errorf("%s: got %s, want %s", c.reason, got, c.want)
			}
		}
	})
}
