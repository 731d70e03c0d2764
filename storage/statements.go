package storage

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/lib/pq"
)

// keptStatements bounds how many statements a connection keeps prepared: more than the services have, but for lists of
// different lengths.
const keptStatements = 200

// errors that tell that a prepared statement is of no use any more: the table has changed, or the server has forgotten it.
const (
	codeChangedResult    = "0A000"
	codeUnknownStatement = "26000"
)

// preparing connects to either database. Their drivers prepare a statement with arguments anew each time that it is run, which doubles the
// round trips to PostgreSQL, and is a quarter of the work of SQLite; these connections remember what they have prepared.
type preparing struct {
	driver.Connector

	// closes says that statements are closed before their connection: SQLite keeps its file open until then. PostgreSQL forgets them by
	// itself, and each would be a round trip, perhaps to a server that does not answer.
	closes bool
}

// driven is what the connections of both drivers can do.
type driven interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// connection is what ours can do.
type connection interface {
	driven
	driver.NamedValueChecker
}

// statement is all that the statements of both drivers can do.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// preparedConnection is a connection with its prepared statements. database/sql uses it from one goroutine at a time.
type preparedConnection struct {
	driven

	prepared *simplelru.LRU[string, statement]
	closes   bool
}

// Connect implements driver.Connector.
func (p preparing) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // database/sql looks at the driver's own errors
	}

	inner, complete := opened.(driven)
	if !complete {
		return nil, errors.Join(fmt.Errorf("a connection of the driver is a %T", opened), opened.Close())
	}

	prepared, err := simplelru.NewLRU(keptStatements, func(_ string, dropped statement) { _ = dropped.Close() })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keeping prepared statements: %w", err), opened.Close())
	}

	return &preparedConnection{driven: inner, prepared: prepared, closes: p.closes}, nil
}

// Close implements driver.Conn.
func (c *preparedConnection) Close() error {
	if c.closes {
		c.prepared.Purge()
	}

	return c.driven.Close() //nolint:wrapcheck // database/sql looks at the driver's own errors
}

// CheckNamedValue implements driver.NamedValueChecker, which not every driver does.
func (c *preparedConnection) CheckNamedValue(value *driver.NamedValue) error {
	if checker, checks := c.driven.(driver.NamedValueChecker); checks {
		return checker.CheckNamedValue(value) //nolint:wrapcheck // database/sql looks at the driver's own errors
	}

	return driver.ErrSkip
}

// QueryContext implements driver.QueryerContext.
func (c *preparedConnection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if len(args) == 0 {
		return c.driven.QueryContext(ctx, query, args) // one round trip as it is
	}

	prepared, err := c.prepare(ctx, query)
	if err != nil {
		return nil, err
	}

	rows, err := prepared.QueryContext(ctx, args)

	return rows, c.checked(query, err)
}

// ExecContext implements driver.ExecerContext.
func (c *preparedConnection) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) == 0 {
		return c.driven.ExecContext(ctx, query, args)
	}

	prepared, err := c.prepare(ctx, query)
	if err != nil {
		return nil, err
	}

	result, err := prepared.ExecContext(ctx, args)

	return result, c.checked(query, err)
}

func (c *preparedConnection) prepare(ctx context.Context, query string) (statement, error) {
	if known, found := c.prepared.Get(query); found {
		return known, nil
	}

	made, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err //nolint:wrapcheck // as above
	}

	prepared, complete := made.(statement)
	if !complete {
		return nil, errors.Join(fmt.Errorf("a statement of the driver is a %T", made), made.Close())
	}

	c.prepared.Add(query, prepared)

	return prepared, nil
}

// checked forgets a statement that is of no use any more. The caller tries again as after any other error.
func (c *preparedConnection) checked(query string, err error) error {
	if known, ok := errors.AsType[*pq.Error](err); ok {
		if code := string(known.Code); code == codeChangedResult || code == codeUnknownStatement {
			c.prepared.Remove(query)
		}
	}

	return err
}
