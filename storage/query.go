package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// callLimit limits the duration of calls whose context has no deadline. Without it, a database that does not respond would
// block the callers.
const callLimit = 10 * time.Second

// begin limits the context to callLimit unless it has a deadline, and waits for a connection from the pool. If tx is a
// transaction, it already has a connection and begin does not wait. After the call, the caller must call end, which releases the
// context and the connection.
func begin(ctx context.Context, tx Tx) (_ context.Context, end func(), _ error) {
	cancel := func() {}
	if _, has := ctx.Deadline(); !has {
		ctx, cancel = context.WithTimeout(ctx, callLimit)
	}

	pooled, is := tx.(pool)
	if !is {
		return ctx, cancel, nil
	}

	if err := pooled.free.Acquire(ctx, 1); err != nil {
		cancel()

		return nil, nil, fmt.Errorf("waiting for a connection to the database: %w", cause(ctx, err))
	}

	return ctx, func() {
		pooled.free.Release(1)
		cancel()
	}, nil
}

// Exec executes a statement and returns the number of rows that it changed. Slices are expanded for IN (?). Like Select and Get,
// Exec fails when its context ends, or after callLimit if the context has no deadline.
func Exec(ctx context.Context, tx Tx, statement string, args ...any) (int64, error) {
	statement, args, err := expand(tx, statement, args)
	if err != nil {
		return 0, err
	}

	ctx, end, err := begin(ctx, tx)
	if err != nil {
		return 0, err
	}

	defer end()

	result, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, fmt.Errorf("executing a statement: %w", cause(ctx, err))
	}

	changed, err := result.RowsAffected()

	return changed, failure.While(err, "counting changed rows")
}

// Select returns the rows of a query, or an empty slice if there are none. Row is a struct with `db` tags or, for a query with a
// single column, the type of this column. Slices in args are expanded for IN (?); an empty slice in args is an error.
func Select[Row any](ctx context.Context, tx Tx, query string, args ...any) ([]Row, error) {
	query, args, err := expand(tx, query, args)
	if err != nil {
		return nil, err
	}

	return selectBound[Row](ctx, tx, query, args)
}

// selectBound returns the rows of a query whose placeholders are already converted for the driver.
func selectBound[Row any](ctx context.Context, tx Tx, query string, args []any) ([]Row, error) {
	ctx, end, err := begin(ctx, tx)
	if err != nil {
		return nil, err
	}

	defer end()

	rows := []Row{}
	if err := sqlx.SelectContext(ctx, tx, &rows, query, args...); err != nil {
		return nil, fmt.Errorf("executing a query: %w", cause(ctx, err))
	}

	return rows, nil
}

// Get returns the first row of a query, or ErrNotFound if the query returns no row. Slices are expanded for IN (?).
func Get[Row any](ctx context.Context, tx Tx, query string, args ...any) (Row, error) {
	var row Row

	query, args, err := expand(tx, query, args)
	if err != nil {
		return row, err
	}

	ctx, end, err := begin(ctx, tx)
	if err != nil {
		return row, err
	}

	defer end()

	if err := sqlx.GetContext(ctx, tx, &row, query, args...); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return row, ErrNotFound
		}

		return row, fmt.Errorf("executing a query: %w", cause(ctx, err))
	}

	return row, nil
}

// cause marks err as an error of a call to the database, for IsUnavailable. It also adds the error of the context, because the
// database reports only that the call was canceled. Callers can then distinguish a deadline from a cancellation with errors.Is.
func cause(ctx context.Context, err error) error { return callError{errors.Join(ctx.Err(), err)} }

// expand expands slices for IN (?) and converts the placeholders for the driver.
func expand(tx Tx, query string, args []any) (string, []any, error) {
	query, args, err := sqlx.In(query, args...)
	if err != nil {
		return "", nil, fmt.Errorf("preparing a query: %w", err)
	}

	return tx.Rebind(query), args, nil
}

// Page returns the LIMIT and OFFSET clauses of a query. The numbers are literals instead of parameters, because the query
// planner bases its estimates on them.
func Page(limit, offset int) string {
	if offset == 0 {
		return fmt.Sprintf("LIMIT %d", limit)
	}

	return fmt.Sprintf("LIMIT %d OFFSET %d", limit, offset)
}

// Conditions collects the conditions of a WHERE clause, with `?` as placeholders, and their arguments. The zero value has no
// conditions and selects all rows.
type Conditions struct {
	words []string
	args  []any
}

// Add adds a condition, but only if used is true.
func (c *Conditions) Add(used bool, condition string, args ...any) {
	if used {
		c.words, c.args = append(c.words, condition), append(c.args, args...)
	}
}

// Where returns the WHERE clause, with a leading space, and the arguments in the order of the conditions. The clause is empty if
// there are no conditions.
func (c *Conditions) Where() (string, []any) {
	if len(c.words) == 0 {
		return "", nil
	}

	return " WHERE " + strings.Join(c.words, " AND "), c.args
}

// EscapeLike escapes the wildcards of LIKE in a string. The condition that uses the result must end with ESCAPE '\'.
func EscapeLike(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}

// Named is a write statement with named parameters. It is parsed once and can be executed many times. The parameters are named
// after the `db` tags of Argument's fields.
type Named[Argument any] struct {
	text string
	// fields are the index paths (see reflect.Value.FieldByIndex) of the parameters in Argument, in their order in the statement.
	fields [][]int
}

// NewNamed parses a statement with parameters such as `:state`. It fails if Argument has no field for a parameter.
func NewNamed[Argument any](text string) (Named[Argument], error) {
	var names []string

	text = regexp.MustCompile(`:\w+`).ReplaceAllStringFunc(text, func(name string) string {
		names = append(names, name[1:])

		return "?"
	})

	fields := reflectx.NewMapper("db").TraversalsByName(reflect.TypeFor[Argument](), names)

	for i, field := range fields {
		if len(field) == 0 {
			return Named[Argument]{}, fmt.Errorf("parameter :%s is not a field of %s", names[i], reflect.TypeFor[Argument]())
		}
	}

	return Named[Argument]{text: text, fields: fields}, nil
}

// Statement returns a Statement whose arguments are the values of the argument's fields.
func (n Named[Argument]) Statement(argument Argument) Statement {
	value, args := reflect.ValueOf(argument), make([]any, 0, len(n.fields))

	for _, field := range n.fields {
		args = append(args, reflectx.FieldByIndexesReadOnly(value, field).Interface())
	}

	return Statement{Text: n.text, Args: args}
}
