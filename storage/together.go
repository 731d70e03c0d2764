package storage

import (
	"context"
	"fmt"
)

// Change is a statement that changes rows, written with `?`, and its arguments.
type Change struct {
	Text string
	Args []any
}

// Apply makes the change inside the caller's transaction.
func Apply(ctx context.Context, tx Tx, change Change) error {
	_, err := Exec(ctx, tx, change.Text, change.Args...)

	return err
}

// Together makes both changes, or neither. The second does not see what the first has changed: PostgreSQL gets them as one statement,
// in one round trip instead of four.
func (db *DB) Together(ctx context.Context, first, second Change) error {
	if db.config.Driver == DriverPostgres {
		_, err := Exec(ctx, db.writer, `WITH first AS (`+first.Text+`) `+second.Text, append(first.Args, second.Args...)...)

		return err
	}

	return db.InTx(ctx, func(tx Tx) error {
		for _, change := range []Change{first, second} {
			if err := Apply(ctx, tx, change); err != nil {
				return fmt.Errorf("changing rows together: %w", err)
			}
		}

		return nil
	})
}
