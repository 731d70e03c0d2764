package auditlog_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// finish ends an accepted operation at the given number of minutes after began.
func (b fixture) finish(minute int, entry auditlog.Entry) {
	b.Helper()

	if _, err := storage.Exec(b.Context(), b.db.Writer(), `UPDATE operations SET state = 'succeeded', finished_at = ? WHERE id = ?`,
		storage.At(began.Add(time.Duration(minute)*time.Minute)), entry.OperationID); err != nil {
		b.Fatal(err)
	}
}

// erasure adds the entry of an erasure of the account.
func (b fixture) erasure(minute int, account string) auditlog.Entry {
	b.Helper()

	return b.add(minute, auditlog.Entry{
		Action: auditlog.ActionErase, Account: account, Status: http.StatusOK, By: auditlog.Actor{User: "root"},
		After: auditlog.Fields{"operations": 1.},
	})
}

func TestErasableEntries(t *testing.T) {
	onEach(t, 0, func(b fixture) {
		alice := auditlog.Actor{User: "cf", Originator: "alice", Address: "10.0.0.1"}
		refused := auditlog.Entry{Action: "provision", By: alice, Status: http.StatusBadRequest}

		of := func(entry auditlog.Entry, instance, operation, account string) auditlog.Entry {
			entry.InstanceID, entry.OperationID, entry.Account = instance, operation, account

			return entry
		}

		wanted := []string{
			b.add(1, of(refused, "i1", "", "")).ID,     // before the first operation of the instance
			b.add(12, of(refused, "i1", "", "")).ID,    // after the creation
			b.add(13, of(refused, "", "o10", "")).ID,   // of an operation
			b.add(14, of(refused, "new", "", "a1")).ID, // of an instance that was never created
		}
		b.add(21, of(refused, "i1", "", ""))      // the instance ID belongs to another account by now
		b.add(22, of(refused, "i2", "", ""))      // of another account
		b.add(23, of(refused, "i1", "", "a2"))    // another account's request for the ID
		b.add(24, of(refused, "", "", ""))        // of no account
		b.add(25, of(refused, "open", "", ""))    // of an instance with an unfinished operation
		b.erasure(26, "a1")                       // an earlier erasure
		b.add(27, of(refused, "", "o20", ""))     // of another account's operation
		b.add(28, of(refused, "i1/x", "", ""))    // of an unknown instance
		b.add(29, of(refused, "", "unknown", "")) // of an unknown operation

		b.finish(11, b.accept(10, process.New{Kind: "provision", InstanceID: "i1", Tenant: "a1"}, auditlog.Entry{By: alice}))
		b.finish(20, b.accept(20, process.New{Kind: "provision", InstanceID: "i1", Tenant: "a2"}, auditlog.Entry{By: alice}))
		b.finish(20, b.accept(19, process.New{Kind: "provision", InstanceID: "i2", Tenant: "a2"}, auditlog.Entry{By: alice}))
		b.accept(18, process.New{Kind: "provision", InstanceID: "open", Tenant: "a1"}, auditlog.Entry{By: alice})

		count, err := b.entries.CountErasable(b.Context(), "a1")
		if err != nil || count != len(wanted) {
			b.Errorf("want %d entries, got %d, %v", len(wanted), count, err)
		}

		got, err := b.entries.Erasable(b.Context(), b.db.Writer(), "a1", 10)
		if diff := cmp.Diff(slices.Sorted(slices.Values(wanted)), got); diff != "" || err != nil {
			b.Errorf("%v -want +got\n%s", err, diff)
		}

		if got, err = b.entries.Erasable(b.Context(), b.db.Writer(), "a1", 2); len(got) != 2 || err != nil {
			b.Errorf("want a batch of 2 entries, got %v, %v", got, err)
		}
	})
}

func TestErase(t *testing.T) {
	onEach(t, 24*time.Hour, func(b fixture) {
		alice := auditlog.Actor{User: "cf", Originator: "alice", Address: "10.0.0.1", RequestID: "r"}

		operation := b.accept(1, process.New{Kind: "provision", InstanceID: "i1", Tenant: "a1"}, auditlog.Entry{
			By: alice, After: auditlog.Fields{"administrators": "alice"},
		})
		b.finish(2, operation)

		refused := b.add(3, auditlog.Entry{
			Action: auditlog.ActionBind, InstanceID: "i1", BindingID: "b", By: alice, Status: http.StatusConflict, Code: "Conflict", Reason: "alice asks",
		})
		erasure := b.erasure(4, "a1")

		if err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
			if err := b.entries.Erase(b.Context(), tx, []string{refused.ID}, erasure.ID); err != nil {
				return err
			}

			return b.operations.Erase(b.Context(), tx, []string{operation.ID}, erasure.ID, began)
		}); err != nil {
			b.Fatal(err)
		}

		want := []auditlog.Entry{
			erasure,
			{ID: refused.ID, At: refused.At, Action: refused.Action, InstanceID: "i1", Status: http.StatusConflict, ErasedBy: erasure.ID},
			{ID: operation.ID, At: operation.At, Action: "provision", InstanceID: "i1", OperationID: operation.ID, Status: http.StatusAccepted, ErasedBy: erasure.ID},
		}

		got, err := b.entries.List(b.Context(), auditlog.Filter{Limit: 10})
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			b.Errorf("%v -want +got\n%s", err, diff)
		}

		if got, err := b.entries.List(b.Context(), auditlog.Filter{Limit: 10, OrderedBy: "alice"}); len(got) != 0 || err != nil {
			b.Errorf("the user can still be found: %v, %v", got, err)
		}

		for account, erased := range map[string]bool{"a1": true, "a2": false, "": false} {
			if got, err := b.entries.Erased(b.Context(), b.db.Reader(), account); got != erased || err != nil {
				b.Errorf("account %q: erased before: want %v, got %v, %v", account, erased, got, err)
			}
		}

		// The database compares the end of the retention period with its own clock. According to this clock, all entries of this test
		// are old.
		if removed, err := b.entries.Remove(b.Context(), began.AddDate(2, 0, 0), 10); removed != 1 || err != nil {
			b.Errorf("only the erased entry may be removed after its retention: got %d, %v", removed, err)
		}
	})
}

// TestDatabasePermitsOnlyErasures checks that the triggers permit the statements of an erasure and no similar ones. TestErasureChangesNoOtherColumn
// checks the columns.
func TestDatabasePermitsOnlyErasures(t *testing.T) {
	onEach(t, 0, func(b fixture) {
		alice := auditlog.Actor{User: "alice"}

		b.finish(2, b.accept(1, process.New{Kind: "provision", InstanceID: "i1", Tenant: "a1"}, auditlog.Entry{By: alice}))
		b.accept(3, process.New{Kind: "update", InstanceID: "i1", Tenant: "a1"}, auditlog.Entry{By: alice})
		b.finish(5, b.accept(4, process.New{Kind: "provision", InstanceID: "i2", Tenant: "a2"}, auditlog.Entry{By: alice}))
		b.add(6, auditlog.Entry{Action: auditlog.ActionBind, InstanceID: "i1", By: alice, Status: http.StatusConflict})
		b.erasure(7, "a1")
		b.add(8, auditlog.Entry{Action: auditlog.ActionErase, Account: "a1", By: alice, Status: http.StatusForbidden})

		const (
			entry     = `UPDATE audit SET ordered_by = '', entry = '{}', erased_by = `
			operation = `UPDATE operations SET ordered_by = '', audit = '{}', erased_by = `
		)

		rejected := map[string]string{
			"an erasure without an entry":           entry + `'none' WHERE id = 'e06'`,
			"an entry that is no erasure":           entry + `'e06' WHERE id = 'e06'`,
			"a rejected erasure":                    entry + `'e08' WHERE id = 'e06'`,
			"no erasure":                            entry + `'' WHERE id = 'e06'`,
			"the entry of an erasure":               entry + `'e07' WHERE id = 'e07'`,
			"another text":                          `UPDATE audit SET ordered_by = '', entry = '{"by":{}}', erased_by = 'e07' WHERE id = 'e06'`,
			"a user that stays":                     `UPDATE audit SET entry = '{}', erased_by = 'e07' WHERE id = 'e06'`,
			"an operation of another account":       operation + `'e07' WHERE id = 'o04'`,
			"an unfinished operation":               operation + `'e07' WHERE id = 'o03'`,
			"an operation without an erasure":       operation + `'none' WHERE id = 'o01'`,
			"an operation with a rejected erasure":  operation + `'e08' WHERE id = 'o01'`,
			"an operation that loses its entry":     `UPDATE operations SET ordered_by = '', audit = '', erased_by = 'e07' WHERE id = 'o01'`,
			"another account without an erasure":    `UPDATE operations SET tenant = 'a2' WHERE id = 'o01'`,
			"an operation marked but not emptied":   `UPDATE operations SET erased_by = 'e07' WHERE id = 'o01'`,
			"an entry that is marked but not empty": `UPDATE audit SET erased_by = 'e07' WHERE id = 'e06'`,
		}

		if b.db.Driver() == storage.DriverSQLite {
			rejected["another row's place"] = `UPDATE OR REPLACE audit SET ordered_by = '', entry = '{}', erased_by = 'e07', rowid = 2 WHERE id = 'e06'`
			rejected["another operation's place"] = `UPDATE OR REPLACE operations SET ordered_by = '', audit = '{}', erased_by = 'e07', rowid = 2 WHERE id = 'o01'`
		}

		for name, statement := range rejected {
			if _, err := storage.Exec(b.Context(), b.db.Writer(), statement); err == nil {
				b.Errorf("%s: the database allows %s", name, statement)
			}
		}

		for _, statement := range []string{entry + `'e07' WHERE id = 'e06'`, operation + `'e07' WHERE id = 'o01'`} {
			if _, err := storage.Exec(b.Context(), b.db.Writer(), statement); err != nil {
				b.Errorf("%s: %v", statement, err)
			}

			if _, err := storage.Exec(b.Context(), b.db.Writer(), statement); err == nil {
				b.Errorf("%s: the database allows a second erasure of the same row", statement)
			}
		}
	})
}

// TestErasureChangesNoOtherColumn combines the statements of an erasure with a change of each other column, one at a time, for rows with and
// without the end of a retention period.
func TestErasureChangesNoOtherColumn(t *testing.T) {
	erased := map[string]string{"audit": "entry", "operations": "audit"}
	ids := map[string]string{"audit": "e03", "operations": "o01"}
	// These columns and the retention period are part of an operation's entry. The engine changes the other columns.
	ofEntry := map[string][]string{"operations": {"id", "kind", "instance_id", "predecessor_id", "created_at", "tenant", "keep_until"}}

	for _, keep := range []time.Duration{0, day} {
		onEach(t, keep, func(b fixture) {
			alice := auditlog.Actor{User: "alice"}

			b.finish(2, b.accept(1, process.New{Kind: "provision", InstanceID: "i1", Tenant: "a1"}, auditlog.Entry{By: alice}))
			b.add(3, auditlog.Entry{Action: auditlog.ActionBind, InstanceID: "i1", By: alice, Status: http.StatusConflict})
			b.erasure(4, "a1")

			for table, entry := range erased {
				columns := ofEntry[table]
				if columns == nil {
					columns = b.columns(table, "ordered_by", "erased_by", entry)
				}

				erasure := `UPDATE ` + table + ` SET ordered_by = '', ` + entry + ` = '{}', erased_by = 'e04'`

				for _, column := range columns {
					for _, value := range []string{`NULL`, otherValue(column)} {
						if keep == 0 && column == "keep_until" && value == `NULL` {
							continue // no change
						}

						statement := erasure + `, ` + column + ` = ` + value + ` WHERE id = '` + ids[table] + `'`

						err := b.undone(statement)
						if err == nil || value != `NULL` && !strings.Contains(err.Error(), "append-only") {
							b.Errorf("keep %s: want the trigger to reject the statement, got %v: %s", keep, err, statement)
						}
					}
				}

				if err := b.undone(erasure + ` WHERE id = '` + ids[table] + `'`); err != nil {
					b.Errorf("keep %s: the erasure alone: %v", keep, err)
				}
			}
		})
	}
}

// undone executes the statement in a transaction that it rolls back, and returns the statement's error.
func (b fixture) undone(statement string) error {
	var failed error

	_ = b.db.InTx(b.Context(), func(tx storage.Tx) error {
		_, failed = storage.Exec(b.Context(), tx, statement)

		return errors.Join(failed, errors.New("rolled back"))
	})

	return failed
}

// columns returns the columns of the table, without the given ones.
func (b fixture) columns(table string, without ...string) []string {
	b.Helper()

	query := `SELECT name FROM pragma_table_info(?)`
	if b.db.Driver() == storage.DriverPostgres {
		query = `SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = ?`
	}

	columns, err := storage.Select[string](b.Context(), b.db.Reader(), query, table)
	if err != nil {
		b.Fatal(err)
	}

	columns = slices.DeleteFunc(columns, func(column string) bool { return slices.Contains(without, column) })
	if len(columns) < 6 {
		b.Fatalf("the table %s has the columns %v", table, columns)
	}

	return columns
}

// otherValue returns an SQL literal of the column's type that differs from the value in the rows of the tests.
func otherValue(column string) string {
	switch column {
	case "at", "created_at", "keep_until":
		return `'2019-01-02T03:04:05.000000Z'`
	case "status":
		return `299`
	default:
		return `'other'`
	}
}
