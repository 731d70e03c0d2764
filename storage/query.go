package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrNotFound tells that no row has the key.
var ErrNotFound = errors.New("not found")

// uniqueViolation is PostgreSQL's code for a row whose key exists.
const uniqueViolation = "23505"

// IsDuplicate reports whether err comes from a row whose key exists already.
func IsDuplicate(err error) bool {
	if known, ok := errors.AsType[*pq.Error](err); ok {
		return known.Code == uniqueViolation
	}

	if known, ok := errors.AsType[*sqlite.Error](err); ok {
		return known.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || known.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}

	return false
}

// callLimit bounds calls whose context has no deadline: a database that does not answer holds nobody for longer.
const callLimit = 10 * time.Second

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}

	return context.WithTimeout(ctx, callLimit)
}

// Exec runs a statement written with `?` and returns how many rows it changed. Slices are spread for IN (?).
func Exec(ctx context.Context, tx Tx, statement string, args ...any) (int64, error) {
	statement, args, err := spread(tx, statement, args)
	if err != nil {
		return 0, err
	}

	ctx, cancel := bounded(ctx)
	defer cancel()

	end, err := turn(ctx, tx)
	if err != nil {
		return 0, err
	}

	defer end()

	result, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, fmt.Errorf("executing: %w", cause(ctx, err))
	}

	changed, err := result.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("counting changed rows: %w", err)
	}

	return changed, nil
}

// Select reads the rows of a query written with `?`.
func Select[Row any](ctx context.Context, tx Tx, query string, args ...any) ([]Row, error) {
	query, args, err := spread(tx, query, args)
	if err != nil {
		return nil, err
	}

	return selectBound[Row](ctx, tx, query, args)
}

// selectBound reads the rows of a query in the database's form.
func selectBound[Row any](ctx context.Context, tx Tx, query string, args []any) ([]Row, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()

	end, err := turn(ctx, tx)
	if err != nil {
		return nil, err
	}

	defer end()

	rows := []Row{}
	if err := sqlx.SelectContext(ctx, tx, &rows, query, args...); err != nil {
		return nil, fmt.Errorf("querying: %w", cause(ctx, err))
	}

	return rows, nil
}

// Get reads the one row of a query written with `?`. It returns ErrNotFound when there is none.
func Get[Row any](ctx context.Context, tx Tx, query string, args ...any) (Row, error) {
	var row Row

	query, args, err := spread(tx, query, args)
	if err != nil {
		return row, err
	}

	ctx, cancel := bounded(ctx)
	defer cancel()

	end, err := turn(ctx, tx)
	if err != nil {
		return row, err
	}

	defer end()

	if err := sqlx.GetContext(ctx, tx, &row, query, args...); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return row, ErrNotFound
		}

		return row, fmt.Errorf("querying: %w", cause(ctx, err))
	}

	return row, nil
}

// cause adds to the error of a call that its context has ended: the database only says that it was asked to cancel.
func cause(ctx context.Context, err error) error { return errors.Join(ctx.Err(), err) }

// spread writes slices out for IN (?) and gives the placeholders the database's form.
func spread(tx Tx, query string, args []any) (string, []any, error) {
	query, args, err := sqlx.In(query, args...)
	if err != nil {
		return "", nil, fmt.Errorf("preparing a query: %w", err)
	}

	return tx.Rebind(query), args, nil
}

// SelectNamed reads the rows of a query whose parameters are named like the `db` tags of the argument.
func SelectNamed[Row any](ctx context.Context, tx Tx, query string, argument any) ([]Row, error) {
	query, args, err := sqlx.Named(query, argument)
	if err != nil {
		return nil, fmt.Errorf("binding a query: %w", err)
	}

	return Select[Row](ctx, tx, query, args...)
}

// Page is the end of a query for some rows behind others. The numbers are written out and are no parameters: the database plans by
// them.
func Page(limit, offset int) string {
	if offset == 0 {
		return fmt.Sprintf("LIMIT %d", limit)
	}

	return fmt.Sprintf("LIMIT %d OFFSET %d", limit, offset)
}
