package prefill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"github.com/environment-broker/environment-broker/internal/secret"
)

const (
	shootNameLength = 12
	manyTenants     = 100
	// apart is the difference in age between a copy and the next one.
	apart = 10 * time.Millisecond
)

// table is a table of the broker.
type table struct {
	name string
	// sealed is the sealed column, if any. place returns the context that binds a sealed value to its row: a value copied without it could not
	// be opened.
	sealed string
	place  func(id string) string
}

// tables returns the tables with rows of an instance. Instances and operations come first: readModel relies on the order.
func tables() []table {
	return []table{
		{name: "instances", sealed: "request", place: func(id string) string { return "request of instance " + id }},
		{name: "operations", sealed: "payload", place: func(id string) string { return "operation " + id }},
		{name: "timeline"},
		{name: "step_attempts"},
	}
}

// rows has the rows of a table by column name, with sealed values decrypted.
type rows struct {
	table

	columns []string
	rows    []map[string]any
}

// model is the copied instance, with all its rows.
type model struct {
	tables []rows
	// These values differ between instances. They are replaced wherever they occur, including the sealed texts.
	instance, operation, shoot, runtime, tenant string
}

// readModel reads the only instance of the database. It fails if there are more, or if its runtime is not ordered yet.
func readModel(ctx context.Context, db *sqlx.DB, keys *secret.Keyring) (model, error) {
	var found model

	for _, table := range tables() {
		read, err := readRows(ctx, db, keys, table)
		if err != nil {
			return model{}, err
		}

		found.tables = append(found.tables, read)
	}

	instances, operations := found.tables[0].rows, found.tables[1].rows
	if len(instances) != 1 || len(operations) != 1 {
		return model{}, fmt.Errorf("there are %d instances and %d operations, want one each", len(instances), len(operations))
	}

	found.instance, found.operation = text(instances[0], "id"), text(operations[0], "id")
	found.shoot, found.runtime = text(instances[0], "shoot_name"), text(instances[0], "runtime_id")
	found.tenant = text(instances[0], "global_account_id")

	if slices.Contains([]string{found.instance, found.operation, found.shoot, found.runtime, found.tenant}, "") {
		return model{}, errors.New("the instance is incomplete: its runtime must have been ordered")
	}

	return found, nil
}

func text(row map[string]any, column string) string {
	value, _ := row[column].(string)

	return value
}

func readRows(ctx context.Context, db *sqlx.DB, keys *secret.Keyring, table table) (read rows, err error) {
	read.table = table

	found, err := db.QueryxContext(ctx, `SELECT * FROM `+table.name) //nolint:sqlclosecheck // The deferred function closes them.
	if err != nil {
		return rows{}, fmt.Errorf("reading %s: %w", table.name, err)
	}

	defer func() { err = errors.Join(err, found.Close()) }()

	for found.Next() {
		row := map[string]any{}
		if err := found.MapScan(row); err != nil {
			return rows{}, fmt.Errorf("reading %s: %w", table.name, err)
		}

		if table.sealed != "" {
			plain, err := keys.Open(text(row, table.sealed), table.place(text(row, "id")))
			if err != nil {
				return rows{}, fmt.Errorf("reading %s: %w", table.name, err)
			}

			row[table.sealed] = string(plain)
		}

		read.columns = slices.Sorted(maps.Keys(row))
		read.rows = append(read.rows, row)
	}

	return read, found.Err()
}

// Copy names a copied instance and its operation.
type Copy struct {
	Instance, Operation string
}

// copied has the values of one copy.
type copied struct {
	Copy

	texts *strings.Replacer
	later time.Duration
}

// copies returns count copies, each slightly younger than the one before.
func (m model) copies(count int) []copied {
	made := make([]copied, 0, count)

	for i := range count {
		instance, operation := uuid.NewString(), uuid.NewString()
		made = append(made, copied{
			Copy:  Copy{Instance: instance, Operation: operation},
			later: time.Duration(i-count) * apart,
			texts: strings.NewReplacer(
				m.instance, instance, m.operation, operation, m.runtime, uuid.NewString(),
				m.shoot, "c-"+strings.ReplaceAll(uuid.NewString(), "-", "")[:shootNameLength],
				m.tenant, fmt.Sprintf("tenant-%03d", i%manyTenants),
			),
		})
	}

	return made
}

// of returns the values of a row in the copy.
func (c copied) of(rows rows, row map[string]any, keys *secret.Keyring) []any {
	values := make([]any, 0, len(rows.columns))

	for _, column := range rows.columns {
		switch value := row[column].(type) {
		case string:
			replaced := c.texts.Replace(value)
			if column == rows.sealed {
				replaced = keys.Seal([]byte(replaced), rows.place(c.texts.Replace(text(row, "id"))))
			}

			values = append(values, replaced)
		case time.Time:
			values = append(values, value.Add(c.later))
		default:
			values = append(values, value)
		}
	}

	return values
}
