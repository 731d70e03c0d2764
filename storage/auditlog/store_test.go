package auditlog_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

var began = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)

// fixture contains an audit log and the store of operations, whose entries the audit log also lists.
type fixture struct {
	*testing.T

	db         *storage.DB
	operations *operations.Store
	entries    *auditlog.Store
}

func onEach(t *testing.T, keep time.Duration, test func(b fixture)) {
	t.Helper()
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) { test(fixtureOn(t, db, keep)) })
}

// fixtureOn returns the stores in the database.
func fixtureOn(t *testing.T, db *storage.DB, keep time.Duration) fixture {
	t.Helper()

	operationStore, err := operations.Open(t.Context(), db, storagetest.Keys(t))
	if err != nil {
		t.Fatal(err)
	}

	operationStore.KeepFor(keep)

	entries, err := auditlog.Open(t.Context(), db, keep)
	if err != nil {
		t.Fatal(err)
	}

	return fixture{T: t, db: db, operations: operationStore, entries: entries}
}

// add adds an entry at the given number of minutes after began.
func (b fixture) add(minute int, entry auditlog.Entry) auditlog.Entry {
	b.Helper()

	entry.ID, entry.At = fmt.Sprintf("e%02d", minute), began.Add(time.Duration(minute)*time.Minute)
	if err := b.entries.Insert(b.Context(), b.db.Writer(), entry); err != nil {
		b.Fatal(err)
	}

	return entry
}

// accept accepts an operation at the given number of minutes after began, and returns the expected entry.
func (b fixture) accept(minute int, operation process.New, entry auditlog.Entry) auditlog.Entry {
	b.Helper()

	encoded, err := entry.Encode()
	if err != nil {
		b.Fatal(err)
	}

	operation.ID, operation.At = fmt.Sprintf("o%02d", minute), began.Add(time.Duration(minute)*time.Minute)
	operation.OrderedBy, operation.Audit, operation.Payload = entry.By.Name(), encoded, json.RawMessage(`{}`)

	if err := b.db.InTx(b.Context(), func(tx storage.Tx) error { return b.operations.Accept(b.Context(), tx, operation) }); err != nil {
		b.Fatal(err)
	}

	entry.ID, entry.OperationID, entry.At = operation.ID, operation.ID, operation.At
	entry.Action, entry.InstanceID, entry.Status = operation.Kind, operation.InstanceID, http.StatusAccepted

	return entry
}

func TestListUnitesEntriesAndOperations(t *testing.T) {
	onEach(t, 0, func(b fixture) {
		alice, cf := auditlog.Actor{User: "cf", Means: "password", Originator: "alice"}, auditlog.Actor{User: "cf", Means: "password"}

		first := b.accept(1, process.New{Kind: "provision", InstanceID: "i1"}, auditlog.Entry{By: alice, After: auditlog.Fields{"plan": "aws"}})
		refused := b.add(2, auditlog.Entry{Action: "provision", InstanceID: "i1", By: cf, Status: http.StatusConflict, Code: "Conflict", Missed: 3})
		retry := b.add(3, auditlog.Entry{Action: auditlog.ActionRetry, InstanceID: "i1", OperationID: "o01", By: alice, Status: http.StatusAccepted, Reason: "again"})
		b.accept(4, process.New{Kind: "provision", InstanceID: "i1", PredecessorID: "o01"}, auditlog.Entry{By: alice})
		other := b.accept(5, process.New{Kind: "deprovision", InstanceID: "i2"}, auditlog.Entry{By: cf, Before: auditlog.Fields{"plan": "gcp"}})

		if err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
			return b.operations.Accept(b.Context(), tx, process.New{ID: "o06", Kind: "provision", InstanceID: "i3", Payload: json.RawMessage(`{}`), At: began})
		}); err != nil {
			b.Fatal(err)
		}

		for name, test := range map[string]struct {
			reason string
			filter auditlog.Filter
			want   []auditlog.Entry
		}{
			"All":      {"newest first; a retry is listed once, an operation without an entry not at all", auditlog.Filter{}, []auditlog.Entry{other, retry, refused, first}},
			"Instance": {"of one instance", auditlog.Filter{InstanceID: "i1"}, []auditlog.Entry{retry, refused, first}},
			"User":     {"on behalf of a user of the platform", auditlog.Filter{OrderedBy: "alice"}, []auditlog.Entry{retry, first}},
			"Client":   {"of the sender, without a user of the platform", auditlog.Filter{OrderedBy: "cf"}, []auditlog.Entry{other, refused}},
			"Action":   {"of an action, successful or rejected", auditlog.Filter{Action: "provision"}, []auditlog.Entry{refused, first}},
			"Time":     {"within an interval", auditlog.Filter{Since: refused.At, Until: other.At}, []auditlog.Entry{retry, refused}},
			"Limit":    {"at most one page of both tables", auditlog.Filter{Limit: 2}, []auditlog.Entry{other, retry}},
			"Page":     {"the next page", auditlog.Filter{Limit: 2, Before: retry.At, BeforeID: retry.ID}, []auditlog.Entry{refused, first}},
		} {
			if test.filter.Limit == 0 {
				test.filter.Limit = 10
			}

			got, err := b.entries.List(b.Context(), test.filter)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				b.Errorf("%s: %s: %v -want +got\n%s", name, test.reason, err, diff)
			}
		}
	})
}

func TestEntriesCannotBeChanged(t *testing.T) {
	onEach(t, 0, func(b fixture) {
		b.add(1, auditlog.Entry{Action: auditlog.ActionAccess})
		b.accept(2, process.New{Kind: "provision", InstanceID: "i1"}, auditlog.Entry{})

		for _, statement := range []string{
			`UPDATE audit SET entry = '{}'`, `UPDATE audit SET keep_until = at`, `DELETE FROM audit`,
			`UPDATE operations SET audit = ''`, `UPDATE operations SET ordered_by = 'nobody'`, `UPDATE operations SET kind = 'update'`,
			`UPDATE operations SET instance_id = 'i2'`, `UPDATE operations SET predecessor_id = 'o00'`, `DELETE FROM operations`,
		} {
			if _, err := storage.Exec(b.Context(), b.db.Writer(), statement); err == nil {
				b.Errorf("%s: the database allows the change", statement)
			}
		}

		if b.db.Driver() == storage.DriverPostgres {
			for _, statement := range []string{`TRUNCATE audit`, `TRUNCATE operations CASCADE`} {
				if _, err := storage.Exec(b.Context(), b.db.Writer(), statement); err == nil {
					b.Errorf("%s: the database allows the change", statement)
				}
			}
		}

		if _, err := storage.Exec(b.Context(), b.db.Writer(), `UPDATE operations SET state = 'in progress', description = 'x'`); err != nil {
			b.Errorf("changes by the engine are blocked: %v", err)
		}

		if got, err := b.entries.List(b.Context(), auditlog.Filter{Limit: 10}); len(got) != 2 || err != nil {
			b.Errorf("want both entries, got %v, %v", got, err)
		}
	})
}

// TestEntriesCannotBeReplaced tries to overwrite existing rows, through the service's connections and through another
// program's, which set no pragmas.
func TestEntriesCannotBeReplaced(t *testing.T) {
	statements := map[string][]string{
		storage.DriverSQLite: {
			`INSERT OR REPLACE INTO audit (id, at, action, instance_id, operation_id, ordered_by, status, entry)
				SELECT id, at, action, instance_id, operation_id, 'nobody', status, entry FROM audit`,
			`INSERT OR REPLACE INTO audit (rowid, id, at, action, instance_id, operation_id, ordered_by, status, entry)
				SELECT rowid, 'other', at, action, instance_id, operation_id, 'nobody', status, entry FROM audit`,
			`INSERT INTO audit SELECT * FROM audit WHERE true ON CONFLICT (id) DO UPDATE SET ordered_by = 'nobody'`,
			`UPDATE OR REPLACE audit SET ordered_by = 'nobody'`,
			`REPLACE INTO operations SELECT * FROM operations`,
			`INSERT INTO operations SELECT * FROM operations WHERE true ON CONFLICT (id) DO UPDATE SET audit = ''`,
			`UPDATE OR REPLACE operations SET audit = ''`,
		},
		storage.DriverPostgres: {
			`INSERT INTO audit SELECT * FROM audit ON CONFLICT (id) DO UPDATE SET ordered_by = 'nobody'`,
			`MERGE INTO audit USING (SELECT 1) AS one ON true WHEN MATCHED THEN DELETE`,
			`INSERT INTO operations SELECT * FROM operations ON CONFLICT (id) DO UPDATE SET audit = ''`,
			`MERGE INTO operations USING (SELECT 1) AS one ON true WHEN MATCHED THEN UPDATE SET audit = ''`,
		},
	}

	path := filepath.Join(t.TempDir(), "test.db")
	databases := map[string]*storage.DB{
		storage.DriverSQLite:   storagetest.Open(t, storage.Config{Driver: storage.DriverSQLite, Path: path}),
		storage.DriverPostgres: storagetest.Open(t, storagetest.Postgres(t)),
	}

	for driver, db := range databases {
		b := fixtureOn(t, db, 0)
		b.add(1, auditlog.Entry{Action: auditlog.ActionAccess, By: auditlog.Actor{User: "alice"}})
		b.accept(2, process.New{Kind: "provision", InstanceID: "i1"}, auditlog.Entry{By: auditlog.Actor{User: "alice"}})

		want, err := b.entries.List(t.Context(), auditlog.Filter{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}

		execute := map[string]func(statement string) error{"service": func(statement string) error {
			_, err := storage.Exec(t.Context(), db.Writer(), statement)

			return err
		}}

		if driver == storage.DriverSQLite {
			other, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()

			execute["other program"] = func(statement string) error {
				_, err := other.ExecContext(t.Context(), statement)

				return err
			}
		}

		for client, exec := range execute {
			for _, statement := range statements[driver] {
				if err := exec(statement); err == nil || !strings.Contains(err.Error(), "append-only") {
					t.Errorf("%s, %s: %s: want an error that the audit log is append-only, got %v", driver, client, statement, err)
				}
			}
		}

		if driver == storage.DriverSQLite {
			// The new row replaces an existing one but has a different ID, so only the DELETE trigger rejects it.
			statement := `INSERT OR REPLACE INTO operations (` + strings.Join(columns(t, db, "operations"), ", ") + `) SELECT 'other', ` +
				strings.Join(columns(t, db, "operations")[1:], ", ") + ` FROM operations`
			if err := execute["service"](statement); err == nil {
				t.Errorf("%s: the database replaces an operation", statement)
			}
		}

		if got, err := b.entries.List(t.Context(), auditlog.Filter{Limit: 10}); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%s: %v -want +got\n%s", driver, err, cmp.Diff(want, got))
		}
	}
}

// columns returns the names of the columns of a table of a SQLite database, in order.
func columns(t *testing.T, db *storage.DB, table string) []string {
	t.Helper()

	names, err := storage.Select[string](t.Context(), db.Reader(), `SELECT name FROM pragma_table_info(?)`, table)
	if err != nil {
		t.Fatal(err)
	}

	return names
}

func TestRetention(t *testing.T) {
	const keep = 24 * time.Hour

	onEach(t, keep, func(b fixture) {
		// The trigger uses the database's clock, so the entry must also be old according to that clock.
		b.add(1, auditlog.Entry{Action: auditlog.ActionAccess})
		b.add(2, auditlog.Entry{Action: auditlog.ActionAccess})

		recent := auditlog.Entry{ID: "young", Action: auditlog.ActionAccess, At: time.Now().UTC().Truncate(time.Second)}
		if err := b.entries.Insert(b.Context(), b.db.Writer(), recent); err != nil {
			b.Fatal(err)
		}

		if _, err := b.entries.Remove(b.Context(), recent.At.Add(2*keep), 10); err == nil {
			b.Error("a service with a fast clock removes an entry during its retention period")
		}

		clock := clocktesting.NewFakeClock(began.Add(keep + 90*time.Second))
		sweep := b.entries.Retention(clock, logging.Discard()).Sweep

		if err := sweep(context.Background()); err != nil {
			b.Fatal(err)
		}

		got, err := b.entries.List(b.Context(), auditlog.Filter{Limit: 10})
		if err != nil || len(got) != 2 || got[0].ID != "young" || got[1].ID != "e02" {
			b.Errorf("only the first entry is old enough: got %v, %v", got, err)
		}
	})
}
