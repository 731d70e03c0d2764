package broker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestBindDuringTheEndOfTheSameBind ends the creation of a binding while a repeated bind reads the binding. The repeated bind
// then sees an unready binding with an ended operation, but must not replace the binding. The test needs PostgreSQL, because
// SQLite executes one write transaction at a time.
func TestBindDuringTheEndOfTheSameBind(t *testing.T) {
	b := newFixtureOn(t, storagetest.Open(t, storagetest.Postgres(t)))
	b.runs(instanceID)

	operation := b.want("a new binding", b.bindLater("b1", role), 202).text("operation")
	repeated := make(chan reply, 1)

	// Replace the table of bindings by a view. Each read of the view waits for an advisory lock, which the test holds.
	for _, statement := range []string{
		`ALTER TABLE bindings RENAME TO all_bindings`,
		`CREATE FUNCTION pause() RETURNS BOOLEAN AS $$ BEGIN
			PERFORM pg_advisory_lock_shared(1); PERFORM pg_advisory_unlock_shared(1); RETURN TRUE; END $$ LANGUAGE plpgsql`,
		`CREATE VIEW bindings AS SELECT * FROM all_bindings WHERE pause()`,
	} {
		if _, err := storage.Exec(b.Context(), b.options.DB.Writer(), statement); err != nil {
			t.Fatal(err)
		}
	}

	if err := b.options.DB.InTx(b.Context(), func(tx storage.Tx) error {
		if _, err := storage.Exec(b.Context(), tx, `SELECT pg_advisory_xact_lock(1)`); err != nil {
			return err
		}

		go func() {
			repeated <- b.send(call{method: "PUT", path: bindingOf(instanceID, "b1") + "?accepts_incomplete=true", body: bindOf(role)})
		}()

		b.awaitsLock()

		row, err := storage.Get[environment.Binding](b.Context(), tx, `SELECT id, instance_id, binding_id, runtime_id, role FROM all_bindings`)
		if err != nil {
			return err
		}

		if err := b.bindings.SaveAccess(b.Context(), tx, row, environment.Access{
			Kubeconfig: "kubeconfig", Server: "https://api.example.com", ExpiresAt: b.clock.Now().Add(time.Hour),
		}); err != nil {
			return err
		}

		_, err = storage.Exec(b.Context(), tx, `UPDATE operations SET state = 'succeeded', finished_at = created_at WHERE id = ?`, operation)

		return err
	}); err != nil {
		t.Fatal(err)
	}

	b.want("the binding is ready", <-repeated, 200)

	states, err := storage.Select[string](b.Context(), b.operations.Reader(), `SELECT state FROM all_bindings`)
	if err != nil || !slices.Equal(states, []string{"ready"}) {
		t.Errorf("the binding is %v, %v", states, err)
	}
}

// awaitsLock returns when a statement waits for a lock in PostgreSQL.
func (b *fixture) awaitsLock() {
	b.Helper()

	for waiting := 0; waiting == 0; {
		var err error
		if waiting, err = storage.Get[int](b.Context(), b.operations.Reader(),
			`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`); err != nil {
			b.Fatal(err)
		}
	}
}

// TestPollDuringAnUnbind removes a binding between the two reads of a poll: a lock on the bindings delays the second read. The
// poll must describe either the creation or the removal, and must find the binding. The test needs PostgreSQL, because reads in
// SQLite never wait for a lock.
func TestPollDuringAnUnbind(t *testing.T) {
	b := newFixtureOn(t, storagetest.Open(t, storagetest.Postgres(t)))
	b.runs(instanceID)
	b.want("a new binding", b.bind("b1", role), 201)

	polled := make(chan reply, 1)

	if err := b.options.DB.InTx(b.Context(), func(tx storage.Tx) error {
		if _, err := storage.Exec(b.Context(), tx, `LOCK TABLE bindings IN ACCESS EXCLUSIVE MODE`); err != nil {
			return err
		}

		go func() { polled <- b.send(call{method: "GET", path: bindingOf(instanceID, "b1") + "/last_operation"}) }()

		b.awaitsLock()

		if _, err := storage.Exec(b.Context(), tx, `DELETE FROM bindings`); err != nil {
			return err
		}

		return b.operations.Accept(b.Context(), tx, process.New{
			ID: "unbind", Kind: environment.KindUnbind, InstanceID: environment.BindingKey(instanceID, "b1"), At: b.clock.Now(),
			Payload: []byte(`{}`), Audit: "{}",
		})
	}); err != nil {
		t.Fatal(err)
	}

	b.wantState("the binding existed when the operation was read", <-polled, "succeeded")
	b.wantState("the removal is accepted", b.pollBinding("b1", ""), "in progress")
}
