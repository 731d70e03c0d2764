// Package prefill fills a database of the broker with copies of an instance that the broker has created. The copies have the
// same rows as the original, so most schema changes need no change here. Only new tables and sealed columns need an entry in
// tables.
package prefill

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"github.com/environment-broker/environment-broker/internal/secret"
)

const (
	// shootNameLength is the length of the random Shoot names of copies. It is long enough to avoid collisions among 100,000
	// names.
	shootNameLength = 12
	// tenants is the number of tenants of the copies. The load uses the same number.
	tenants = 100
	// interval is the difference in age between two consecutive copies.
	interval = 10 * time.Millisecond
)

// table is a table of the broker with rows that belong to an instance.
type table struct {
	name string
	// sealed is the name of the encrypted column, if any. place returns the context that binds an encrypted value to the row with
	// the ID, because the stores reject a value that was copied to another row.
	sealed string
	place  func(id string) string
}

// tables returns the tables with rows of an instance. The first two tables have one row for each instance. The contexts of
// encrypted values repeat those in the stores, which do not export them. A test opens the copies with the stores.
func tables() []table {
	return []table{
		{name: "instances", sealed: "request", place: func(id string) string { return "request of instance " + id }},
		{name: "operations", sealed: "payload", place: func(id string) string { return "operation " + id }},
		{name: "timeline"},
		{name: "step_attempts"},
	}
}

// Copy has the IDs of an instance and of its operation.
type Copy struct {
	Instance, Operation string
}

// Multiply copies the only instance of the database, with all its rows, until there are count instances. It returns the copies,
// oldest first, followed by the original. It fails the test if the database does not have exactly one instance with one
// operation, or if the runtime of the instance is not ordered yet, because a copy needs a new runtime ID.
func Multiply(tb testing.TB, db *sqlx.DB, keys *secret.Keyring, count int) []Copy {
	tb.Helper()

	rows := make([][]map[string]any, 0, len(tables()))
	for _, table := range tables() {
		rows = append(rows, read(tb, db, keys, table))
	}

	if len(rows[0]) != 1 || len(rows[1]) != 1 {
		tb.Fatalf("found %d instances and %d operations, want one each", len(rows[0]), len(rows[1]))
	}

	original, operation := rows[0][0], text(rows[1][0], "id")
	instance, runtime := text(original, "id"), text(original, "runtime_id")
	shoot, tenant := text(original, "shoot_name"), text(original, "global_account_id")

	if slices.Contains([]string{instance, operation, runtime, shoot, tenant}, "") {
		tb.Fatal("the instance is incomplete: its runtime must be ordered")
	}

	copies := make([]Copy, 0, count)
	replacers := make([]*strings.Replacer, 0, count)

	for i := range count - 1 {
		copied := Copy{Instance: uuid.NewString(), Operation: uuid.NewString()}
		copies = append(copies, copied)
		// These values occur in several columns and in the encrypted texts.
		replacers = append(replacers, strings.NewReplacer(
			instance, copied.Instance, operation, copied.Operation, runtime, uuid.NewString(),
			shoot, "c-"+strings.ReplaceAll(uuid.NewString(), "-", "")[:shootNameLength], tenant, fmt.Sprintf("tenant-%03d", i%tenants),
		))
	}

	for i, table := range tables() {
		if err := write(db, keys, table, rows[i], replacers); err != nil {
			tb.Fatalf("filling %s: %v", table.name, err)
		}
	}

	// Without this statement, autovacuum would run during a measurement.
	if _, err := db.ExecContext(tb.Context(), `VACUUM ANALYZE`); err != nil {
		tb.Fatalf("vacuuming: %v", err)
	}

	return append(copies, Copy{Instance: instance, Operation: operation})
}

// read returns the rows of a table as maps by column, with encrypted values decrypted.
func read(tb testing.TB, db *sqlx.DB, keys *secret.Keyring, table table) (read []map[string]any) {
	tb.Helper()

	found, err := db.QueryxContext(tb.Context(), `SELECT * FROM `+table.name) //nolint:sqlclosecheck // A false positive: see below.
	if err != nil {
		tb.Fatalf("reading %s: %v", table.name, err)
	}
	defer found.Close() //nolint:errcheck // Err returns all errors of the iteration.

	for found.Next() {
		row := map[string]any{}
		if err := found.MapScan(row); err != nil {
			tb.Fatalf("reading %s: %v", table.name, err)
		}

		if table.sealed != "" {
			plain, err := keys.Open(text(row, table.sealed), table.place(text(row, "id")))
			if err != nil {
				tb.Fatalf("reading %s: %v", table.name, err)
			}

			row[table.sealed] = string(plain)
		}

		read = append(read, row)
	}

	if err := found.Err(); err != nil {
		tb.Fatalf("reading %s: %v", table.name, err)
	}

	return read
}

// text returns the value of a column, or an empty string if the value is not text.
func text(row map[string]any, column string) string {
	value, _ := row[column].(string)

	return value
}

// write inserts one copy of the rows for each replacer. The replacer contains the IDs and names of the copy. Copies differ in
// age, so that lists have a defined order.
func write(db *sqlx.DB, keys *secret.Keyring, table table, rows []map[string]any, replacers []*strings.Replacer) error {
	if len(rows) == 0 {
		return nil
	}

	columns := slices.Sorted(maps.Keys(rows[0]))

	tx, err := db.Beginx()
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // This fails after the commit.

	statement, err := tx.Prepare(fmt.Sprintf(`COPY %s (%s) FROM STDIN`, table.name, strings.Join(columns, ", ")))
	if err != nil {
		return err
	}
	defer statement.Close() //nolint:errcheck // Exec has flushed the rows and returned their errors.

	for i, replacer := range replacers {
		age := time.Duration(len(replacers)-i) * interval

		for _, row := range rows {
			values := table.copied(row, columns, keys, replacer, age)
			if _, err := statement.Exec(values...); err != nil {
				return err
			}
		}
	}

	if _, err := statement.Exec(); err != nil { // Without arguments, Exec flushes the rows.
		return err
	}

	return tx.Commit()
}

// copied returns the values of a copied row, in the order of the columns.
func (t table) copied(row map[string]any, columns []string, keys *secret.Keyring, replacer *strings.Replacer, age time.Duration) []any {
	values := make([]any, 0, len(columns))

	for _, column := range columns {
		value := row[column]

		switch original := value.(type) {
		case string:
			replaced := replacer.Replace(original)
			if column == t.sealed {
				replaced = keys.Seal([]byte(replaced), t.place(replacer.Replace(text(row, "id"))))
			}

			value = replaced
		case time.Time:
			value = original.Add(-age)
		}

		values = append(values, value)
	}

	return values
}
