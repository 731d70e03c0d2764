package storage

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Statement is a statement that changes rows, written with `?`, and its arguments.
type Statement struct {
	Text string
	Args []any
}

// Apply makes the change inside the caller's transaction.
func Apply(ctx context.Context, tx Tx, change Statement) error {
	_, err := Exec(ctx, tx, change.Text, change.Args...)

	return err
}

// ExecBatch makes both changes, or neither. The second does not see what the first has changed: PostgreSQL gets them as one statement,
// in one round trip instead of four.
func (db *DB) ExecBatch(ctx context.Context, first, second Statement) error {
	if db.config.Driver == DriverPostgres {
		_, err := Exec(ctx, db.writer, `WITH first AS (`+first.Text+`) `+second.Text, append(first.Args, second.Args...)...)

		return err
	}

	return db.InTx(ctx, func(tx Tx) error {
		for _, change := range []Statement{first, second} {
			if err := Apply(ctx, tx, change); err != nil {
				return fmt.Errorf("changing rows together: %w", err)
			}
		}

		return nil
	})
}

// ExecCTE makes a change that returns a value of the one row that it changes, and then the others, which read that value from the table
// `first (value)`. Where the first changes no row, that table is empty, and changed is false. None of the others sees what another one has
// changed, or all do: PostgreSQL gets them as one statement, in one round trip instead of one for each and two for the transaction. No
// argument is a slice: the texts are long and go into many calls, and are not looked through for them.
func (db *DB) ExecCTE(ctx context.Context, first Statement, others ...Statement) (value string, changed bool, err error) {
	if db.config.Driver == DriverPostgres {
		return one(selectBound[string](ctx, db.writer, db.writer.Rebind(chained(first, others)), chainedArgs(first, others)))
	}

	err = db.InTx(ctx, func(tx Tx) error {
		value, changed, err = one(Select[string](ctx, tx, first.Text, first.Args...))
		if err != nil || !changed {
			return err
		}

		for _, other := range others {
			if err := ApplyAfter(ctx, tx, value, other); err != nil {
				return err
			}
		}

		return nil
	})

	return value, changed, err
}

// ApplyAfter makes a change of a chain inside the caller's transaction, which has made the first one.
func ApplyAfter(ctx context.Context, tx Tx, value string, other Statement) error {
	return Apply(ctx, tx, Statement{
		Text: `WITH first (value) AS (SELECT CAST(? AS TEXT)) ` + other.Text, Args: slices.Concat([]any{value}, other.Args),
	})
}

func chained(first Statement, others []Statement) string {
	var text strings.Builder

	text.WriteString(`WITH first (value) AS (` + first.Text + `)`)

	for number, other := range others {
		text.WriteString(`, other` + strconv.Itoa(number) + ` AS (` + other.Text + `)`)
	}

	text.WriteString(` SELECT value FROM first`)

	return text.String()
}

func chainedArgs(first Statement, others []Statement) []any {
	args := slices.Clone(first.Args)
	for _, other := range others {
		args = append(args, other.Args...)
	}

	return args
}

func one(values []string, err error) (value string, found bool, _ error) {
	if err != nil || len(values) == 0 {
		return "", false, err
	}

	return values[0], true, nil
}
