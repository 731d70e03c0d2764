package storage

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/lib/pq"
)

// maxStatements limits the number of prepared statements of a connection. The services use fewer, unless IN lists have many
// different lengths.
const maxStatements = 200

// The SQLSTATEs for a prepared statement that can no longer be used, because its table has changed or the server has dropped it.
const (
	codeChangedResult    = "0A000"
	codeUnknownStatement = "26000"
)

// Unprepared is the prefix of queries that the database plans again at each execution, for the actual arguments. PostgreSQL may
// plan a prepared statement once for all arguments, which is slow if few rows match some arguments and many match others.
const Unprepared = "/* planned for the arguments */ "

// preparing connects to PostgreSQL or SQLite and caches prepared statements in each connection. Without the cache, the drivers
// would prepare a statement with arguments again for each execution. This would double the round trips to PostgreSQL, and account
// for a quarter of SQLite's work.
type preparing struct {
	driver.Connector

	// If closes is true, the cached statements are closed before the connection. SQLite needs this, because it keeps its file open
	// as long as statements are open. PostgreSQL drops the statements of a closed connection, and closing each of them would need a
	// round trip, possibly to a server that does not respond.
	closes bool
	// unnamed disables the cache of prepared statements. A pooler in transaction mode may run each transaction on another connection
	// to the server, and versions of PgBouncer before 1.21 do not support prepared statements in this mode.
	unnamed bool
}

// driven contains the optional interfaces that database/sql checks for. The connections of both drivers implement all of them.
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

// statement contains the methods that the statements of both drivers implement.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// preparedConnection is a connection with its prepared statements. database/sql uses a connection from one goroutine at a time.
type preparedConnection struct {
	driven

	prepared *simplelru.LRU[string, statement]
	closes   bool
	unnamed  bool
}

// Connect implements driver.Connector.
func (p preparing) Connect(ctx context.Context) (driver.Conn, error) { return p.connect(ctx) }

// connect opens a connection with an empty statement cache.
func (p preparing) connect(ctx context.Context) (*preparedConnection, error) {
	opened, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // database/sql inspects the driver's own errors
	}

	inner, complete := opened.(driven)
	if !complete {
		return nil, errors.Join(fmt.Errorf("unexpected connection type %T", opened), opened.Close())
	}

	prepared, err := simplelru.NewLRU(maxStatements, func(_ string, dropped statement) { _ = dropped.Close() })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("creating the statement cache: %w", err), opened.Close())
	}

	return &preparedConnection{driven: inner, prepared: prepared, closes: p.closes, unnamed: p.unnamed}, nil
}

// Close implements driver.Conn.
func (c *preparedConnection) Close() error {
	if c.closes {
		c.prepared.Purge()
	}

	return c.driven.Close() //nolint:wrapcheck // database/sql inspects the driver's own errors
}

// CheckNamedValue implements driver.NamedValueChecker. Only one of the two drivers implements it. For the other driver,
// database/sql converts the value itself.
func (c *preparedConnection) CheckNamedValue(value *driver.NamedValue) error {
	if checker, checks := c.driven.(driver.NamedValueChecker); checks {
		return checker.CheckNamedValue(value) //nolint:wrapcheck // database/sql inspects the driver's own errors
	}

	return driver.ErrSkip
}

// QueryContext implements driver.QueryerContext.
func (c *preparedConnection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if len(args) == 0 || c.unnamed || strings.HasPrefix(query, Unprepared) {
		return c.driven.QueryContext(ctx, query, args) // without arguments, this needs only one round trip
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
	if len(args) == 0 || c.unnamed {
		return c.driven.ExecContext(ctx, query, args)
	}

	prepared, err := c.prepare(ctx, query)
	if err != nil {
		return nil, err
	}

	result, err := prepared.ExecContext(ctx, args)

	return result, c.checked(query, err)
}

// prepare returns a prepared statement for the query. It takes the statement from the connection's cache, or prepares it and adds
// it to the cache.
func (c *preparedConnection) prepare(ctx context.Context, query string) (statement, error) {
	if cached, found := c.prepared.Get(query); found {
		return cached, nil
	}

	made, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err //nolint:wrapcheck // database/sql inspects the driver's own errors
	}

	prepared, complete := made.(statement)
	if !complete {
		return nil, errors.Join(fmt.Errorf("unexpected statement type %T", made), made.Close())
	}

	c.prepared.Add(query, prepared)

	return prepared, nil
}

// checked returns err. If the error says that the statement can no longer be used, checked removes the statement from the cache.
// This happens after a newer replica has migrated the tables. Only this call fails, and the engine or the client retries it.
func (c *preparedConnection) checked(query string, err error) error {
	if pqErr, ok := errors.AsType[*pq.Error](err); ok {
		if code := string(pqErr.Code); code == codeChangedResult || code == codeUnknownStatement {
			c.prepared.Remove(query)
		}
	}

	return err
}
