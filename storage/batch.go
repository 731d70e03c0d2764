package storage

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Statement is an SQL statement that writes rows, with `?` as placeholders, and its arguments. Stores return a Statement instead
// of executing it if a caller must combine statements from several stores into one round trip.
type Statement struct {
	Text string
	Args []any
}

// Apply executes the statement in the caller's transaction.
func Apply(ctx context.Context, tx Tx, statement Statement) error {
	_, err := Exec(ctx, tx, statement.Text, statement.Args...)

	return err
}

// ExecBatch executes both statements or neither. The second must not depend on changes that the first makes: PostgreSQL receives
// both as one statement, in one round trip instead of four, so both see the rows as they were before.
func (db *DB) ExecBatch(ctx context.Context, first, second Statement) error {
	if db.config.Driver == DriverPostgres {
		_, err := Exec(ctx, db.writer, `WITH first AS (`+first.Text+`) `+second.Text, append(first.Args, second.Args...)...)

		return err
	}

	return db.InTx(ctx, func(tx Tx) error {
		for _, statement := range []Statement{first, second} {
			if err := Apply(ctx, tx, statement); err != nil {
				return fmt.Errorf("executing a batch: %w", err)
			}
		}

		return nil
	})
}

// ExecCTE executes the first statement, which must return one value from the single row that it changes or locks. It then executes
// the other statements, which can read this value from the table `first (value)`. If the first statement returns no row, the table
// is empty and changed is false.
//
// The other statements must work whether or not they see each other's changes. PostgreSQL receives all statements as one, in a
// single round trip. SQLite executes them in order. Arguments must not be slices, because IN (?) is not expanded.
func (db *DB) ExecCTE(ctx context.Context, first Statement, others ...Statement) (value string, changed bool, err error) {
	if db.config.Driver == DriverPostgres {
		return ApplyCTE(ctx, db.writer, first, others...)
	}

	err = db.InTx(ctx, func(tx Tx) error {
		value, changed, err = ApplyCTE(ctx, tx, first, others...)

		return err
	})

	return value, changed, err
}

// ApplyCTE is like ExecCTE, but runs in the caller's transaction.
func ApplyCTE(ctx context.Context, tx Tx, first Statement, others ...Statement) (value string, changed bool, err error) {
	if tx.DriverName() == DriverPostgres {
		return onlyValue(selectBound[string](ctx, tx, tx.Rebind(cte(first, others)), cteArgs(first, others)))
	}

	value, changed, err = onlyValue(Select[string](ctx, tx, first.Text, first.Args...))
	if err != nil || !changed {
		return value, changed, err
	}

	for _, other := range others {
		if err := ApplyAfter(ctx, tx, value, other); err != nil {
			return value, changed, err
		}
	}

	return value, changed, nil
}

// ApplyAfter executes, in the caller's transaction, a statement that was written as one of the other statements for ExecCTE. The
// table `first (value)` then contains the given value.
func ApplyAfter(ctx context.Context, tx Tx, value string, other Statement) error {
	return Apply(ctx, tx, Statement{
		Text: `WITH first (value) AS (SELECT CAST(? AS TEXT)) ` + other.Text, Args: slices.Concat([]any{value}, other.Args),
	})
}

// cte joins all statements into one that executes each of them as a common table expression and returns the value of the first.
func cte(first Statement, others []Statement) string {
	var text strings.Builder

	text.WriteString(`WITH first (value) AS (` + first.Text + `)`)

	for number, other := range others {
		text.WriteString(`, other` + strconv.Itoa(number) + ` AS (` + other.Text + `)`)
	}

	text.WriteString(` SELECT value FROM first`)

	return text.String()
}

// cteArgs returns the arguments of all statements, in the order in which cte joins the statements.
func cteArgs(first Statement, others []Statement) []any {
	args := slices.Clone(first.Args)
	for _, other := range others {
		args = append(args, other.Args...)
	}

	return args
}

// onlyValue returns the value of the single row that a statement returned, or false if it returned no row.
func onlyValue(values []string, err error) (value string, found bool, _ error) {
	if err != nil || len(values) == 0 {
		return "", false, err
	}

	return values[0], true, nil
}
