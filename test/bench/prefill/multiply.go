package prefill

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// Multiply copies the only instance of the database, with all its rows, until there are count. It returns the copies, oldest first, followed by
// the original.
func Multiply(ctx context.Context, db *sqlx.DB, keys *secret.Keyring, count int) ([]Copy, error) {
	model, err := readModel(ctx, db, keys)
	if err != nil {
		return nil, err
	}

	copies := model.copies(count - 1)

	for _, rows := range model.tables {
		if len(rows.rows) == 0 {
			continue
		}

		if err := insert(ctx, db, rows, copies, keys); err != nil {
			return nil, fmt.Errorf("filling %s: %w", rows.name, err)
		}
	}

	// Otherwise autovacuum would run during a measurement.
	if _, err := db.ExecContext(ctx, `VACUUM ANALYZE`); err != nil {
		return nil, fmt.Errorf("vacuuming: %w", err)
	}

	made := make([]Copy, 0, count)
	for _, each := range copies {
		made = append(made, each.Copy)
	}

	return append(made, Copy{Instance: model.instance, Operation: model.operation}), nil
}

// insert copies the rows of one table by COPY.
func insert(ctx context.Context, db *sqlx.DB, rows rows, copies []copied, keys *secret.Keyring) (err error) {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}

	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()

	statement, err := tx.PrepareContext(ctx, fmt.Sprintf(`COPY %s (%s) FROM STDIN`, rows.name, strings.Join(rows.columns, ", ")))
	if err != nil {
		return err
	}

	for _, each := range copies {
		for _, row := range rows.rows {
			if _, err := statement.ExecContext(ctx, each.of(rows, row, keys)...); err != nil {
				return errors.Join(err, statement.Close())
			}
		}
	}

	if _, err := statement.ExecContext(ctx); err != nil {
		return errors.Join(err, statement.Close())
	}

	if err := statement.Close(); err != nil {
		return err
	}

	return tx.Commit()
}
