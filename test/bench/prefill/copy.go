package prefill

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/errgroup"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// shootNameLength is the length of the random Shoot names of copies. It is long enough to avoid collisions among a million names.
const shootNameLength = 14

// read returns the rows of a table as maps from column names to values. Encrypted values are decrypted.
func read(tb testing.TB, db *sqlx.DB, keys *secret.Keyring, table table) (read []map[string]any) {
	tb.Helper()

	query := `SELECT * FROM ` + table.name
	if table.order != "" {
		query += ` ORDER BY ` + table.order
	}

	found, err := db.QueryxContext(tb.Context(), query) //nolint:sqlclosecheck // A false positive: see below.
	if err != nil {
		tb.Fatalf("reading %s: %v", table.name, err)
	}
	defer found.Close() //nolint:errcheck // Err returns all errors of the iteration.

	for found.Next() {
		row := map[string]any{}
		if err := found.MapScan(row); err != nil {
			tb.Fatalf("reading %s: %v", table.name, err)
		}

		if text(row, table.sealed) != "" {
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

// text returns the value of a column, or an empty string if the value is not a string.
func text(row map[string]any, column string) string {
	value, _ := row[column].(string)

	return value
}

// batch writes copies of one instance, which is called the original.
type batch struct {
	Options

	// original contains the values that identify the original, as originalOf returns them.
	original []string
	// namespace is a random UUID from which the identifying values of the copies are derived, so that no two batches create the same
	// values.
	namespace uuid.UUID
	keys      *secret.Keyring
}

// writers is the number of connections that fill the database. It is large enough that neither the encryption nor a single
// PostgreSQL process is the bottleneck.
const writers = 6

// fill inserts the copies of all rows, concurrently.
func (b batch) fill(ctx context.Context, db *sqlx.DB, rows map[string][]map[string]any) error {
	db.SetMaxOpenConns(writers)
	defer db.SetMaxOpenConns(1)

	if err := setStorage(ctx, db, "EXTERNAL"); err != nil { // Encrypted values cannot be compressed, so PostgreSQL must not try.
		return err
	}

	for _, timeline := range []bool{false, true} {
		var group errgroup.Group

		group.SetLimit(writers)

		for _, table := range tables() {
			if table.timeline != timeline || len(rows[table.name]) == 0 {
				continue
			}

			copies, parts := b.Count-1, 2

			for part := range parts {
				group.Go(func() error {
					return failure.While(b.write(db, table, rows[table.name], part*copies/parts, (part+1)*copies/parts), "filling %s", table.name)
				})
			}
		}

		if err := group.Wait(); err != nil {
			return err
		}
	}

	return setStorage(ctx, db, "EXTENDED")
}

// setStorage sets the PostgreSQL storage mode of all columns with encrypted values.
func setStorage(ctx context.Context, db *sqlx.DB, storage string) error {
	for _, table := range tables() {
		if table.sealed == "" {
			continue
		}

		if _, err := db.ExecContext(ctx, fmt.Sprintf(`ALTER TABLE %s ALTER COLUMN %s SET STORAGE %s`, table.name, table.sealed, storage)); err != nil {
			return failure.While(err, "setting the storage of %s", table.name)
		}
	}

	return nil
}

// write inserts the rows of a table for the copies of the instance with the numbers first to last-1. The copies differ in age, so
// that lists have a defined order.
func (b batch) write(db *sqlx.DB, table table, rows []map[string]any, first, last int) error {
	columns := slices.Sorted(maps.Keys(rows[0]))

	templates := make([]template, 0, len(rows))
	for i, row := range rows {
		if b.Emptied && table.name == "operations" && i < len(rows)-1 {
			row = maps.Clone(row)
			row[table.sealed] = `{}`
		}

		templates = append(templates, b.template(table, row, columns))
	}

	tx, err := db.Beginx()
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // This fails after the commit.

	statement, err := tx.Prepare(fmt.Sprintf(`COPY %s (%s) FROM STDIN`, table.name, strings.Join(columns, ", ")))
	if err != nil {
		return err
	}
	defer statement.Close() //nolint:errcheck // The last Exec has flushed the rows and returned any error.

	for number := first; number < last; number++ {
		age := time.Duration(b.Count-1-number) * b.interval()
		old := b.Timelines > 0 && age > b.Timelines

		if old && table.timeline {
			continue
		}

		values := b.values(number)

		for i, template := range templates {
			row := int64((number+1)*len(rows) + i + 1)
			if _, err := statement.Exec(template.copied(values, age, row, old)...); err != nil {
				return err
			}
		}
	}

	if _, err := statement.Exec(); err != nil { // Without arguments, Exec flushes the rows.
		return err
	}

	return tx.Commit()
}

// template is a row to copy. values contains the value of each column. A string that contains identifying values of the original
// is split into parts.
type template struct {
	table   table
	keys    *secret.Keyring
	id      parts
	columns []string
	values  []any
	// now is the time when the template was created. Earlier times are shifted by the age of each copy. Later times, such as the
	// end of a validity period, are the same in all copies.
	now time.Time
}

// parts is a string that was split at identifying values. Every second part is the index of such a value.
type parts []string

// of returns the string for the copy with the given identifying values.
func (p parts) of(values []string) string {
	var text strings.Builder

	for i, part := range p {
		if i%2 == 0 {
			text.WriteString(part)

			continue
		}

		index, _ := strconv.Atoi(part)
		text.WriteString(values[index])
	}

	return text.String()
}

// template returns the template for copies of the given row.
func (b batch) template(table table, row map[string]any, columns []string) template {
	const mark = "\x00" // never part of a text in PostgreSQL

	pairs := make([]string, 0, 2*len(b.original))
	for i, value := range b.original {
		pairs = append(pairs, value, mark+strconv.Itoa(i)+mark)
	}

	replacer := strings.NewReplacer(pairs...)
	prepared := template{table: table, keys: b.keys, columns: columns, now: time.Now()}

	for _, column := range columns {
		value := row[column]

		if original, isText := value.(string); isText {
			if split := strings.Split(replacer.Replace(original), mark); len(split) > 1 || column == table.sealed && original != "" {
				value = parts(split)
			}
		}

		if column == "id" {
			prepared.id, _ = value.(parts)
		}

		prepared.values = append(prepared.values, value)
	}

	return prepared
}

// copied returns the values of a copied row, in the order of the columns. number is the number of the row in its table. old is
// true if the copy has no timeline.
func (t template) copied(values []string, age time.Duration, number int64, old bool) []any {
	copied := slices.Clone(t.values)

	for i, value := range copied {
		switch original := value.(type) {
		case parts:
			text := original.of(values)
			if t.columns[i] == t.table.sealed {
				text = t.keys.Seal([]byte(text), t.table.place(t.id.of(values)))
			}

			copied[i] = text
		case time.Time:
			if original.Before(t.now) {
				copied[i] = original.Add(-age)
			}
		}

		switch t.columns[i] {
		case t.table.number:
			copied[i] = number
		case "timeline_removed_at":
			if old {
				copied[i] = t.now
			}
		}
	}

	return copied
}
