package storage

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/lib/pq"
)

// lastWords is how long a server has to answer once the context of a call has ended.
const lastWords = time.Second

// guarding connects to PostgreSQL so that no call outlives its context by more than lastWords. lib/pq asks the server to cancel, and
// then waits for its answer: from a server that is frozen, or behind a line that was cut without a word, for a quarter of an hour.
type guarding struct {
	*pq.Connector
}

// guardedConnection gives up its line when the context of a call ends.
type guardedConnection struct {
	connection

	line *line
	// gaveUp says that the connection is not used again.
	gaveUp atomic.Bool
}

// Connect implements driver.Connector.
func (g guarding) Connect(ctx context.Context) (driver.Conn, error) {
	line, own := &line{}, *g.Connector
	own.Dialer(line)

	opened, err := preparing{Connector: &own}.Connect(ctx)
	if err != nil {
		return nil, err
	}

	line.connected = true

	inner, complete := opened.(connection)
	if !complete {
		return nil, errors.Join(fmt.Errorf("a prepared connection is a %T", opened), opened.Close())
	}

	if err := writes(ctx, inner); err != nil {
		return nil, errors.Join(err, inner.Close())
	}

	return &guardedConnection{connection: inner, line: line}, nil
}

// during gives up the line when the context ends before the call has finished. After that the connection is not used again.
func (c *guardedConnection) during(ctx context.Context) (finish func()) {
	stop := context.AfterFunc(ctx, func() { _ = c.line.SetDeadline(time.Now().Add(lastWords)) })

	return func() {
		if !stop() {
			c.gaveUp.Store(true)
		}
	}
}

// BeginTx implements driver.ConnBeginTx. The context is that of the whole transaction.
func (c *guardedConnection) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	finish := c.during(ctx)

	begun, err := c.connection.BeginTx(ctx, options)
	if err != nil {
		finish()

		return nil, err //nolint:wrapcheck // database/sql looks at the driver's own errors
	}

	return guardedTx{begun, finish}, nil
}

// QueryContext implements driver.QueryerContext.
func (c *guardedConnection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	finish := c.during(ctx)

	rows, err := c.connection.QueryContext(ctx, query, args)
	if err != nil {
		finish()

		return nil, c.checked(err)
	}

	return guardedRows{rows, finish}, nil
}

// ExecContext implements driver.ExecerContext.
func (c *guardedConnection) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	defer c.during(ctx)()

	result, err := c.connection.ExecContext(ctx, query, args)

	return result, c.checked(err)
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *guardedConnection) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	defer c.during(ctx)()

	return c.connection.PrepareContext(ctx, query) //nolint:wrapcheck // as above
}

// Ping implements driver.Pinger.
func (c *guardedConnection) Ping(ctx context.Context) error {
	defer c.during(ctx)()

	return c.connection.Ping(ctx) //nolint:wrapcheck // as above
}

// ResetSession implements driver.SessionResetter.
func (c *guardedConnection) ResetSession(ctx context.Context) error {
	if c.gaveUp.Load() {
		return driver.ErrBadConn
	}

	return c.connection.ResetSession(ctx) //nolint:wrapcheck // as above
}

// IsValid implements driver.Validator.
func (c *guardedConnection) IsValid() bool { return !c.gaveUp.Load() && c.connection.IsValid() }

type guardedTx struct {
	driver.Tx

	finish func()
}

func (t guardedTx) Commit() error {
	defer t.finish()

	return t.Tx.Commit() //nolint:wrapcheck // as above
}

func (t guardedTx) Rollback() error {
	defer t.finish()

	return t.Tx.Rollback() //nolint:wrapcheck // as above
}

type guardedRows struct {
	driver.Rows

	finish func()
}

func (r guardedRows) Close() error {
	defer r.finish()

	return r.Rows.Close() //nolint:wrapcheck // as above
}

// line is the network connection below one database connection, and dials it.
type line struct {
	net.Conn

	// connected says that the connection is made. What is dialed from then on asks the server to cancel a call.
	connected bool
}

// Dial implements pq.Dialer.
func (l *line) Dial(network, address string) (net.Conn, error) {
	return l.DialContext(context.Background(), network, address)
}

// DialTimeout implements pq.Dialer.
func (l *line) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()

	return l.DialContext(ctx, network, address)
}

// DialContext implements pq.DialerContext.
func (l *line) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	until := time.Now().Add(lastWords)

	if l.connected {
		bounded, cancel := context.WithDeadline(ctx, until)
		defer cancel()

		ctx = bounded
	}

	dialed, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err //nolint:wrapcheck // lib/pq and database/sql look at it
	}

	if l.connected {
		return plea{dialed, until}, nil
	}

	l.Conn = dialed

	return dialed, nil
}

// plea is a connection that asks to cancel a call, and waits for no longer than the call does.
type plea struct {
	net.Conn

	until time.Time
}

// SetDeadline keeps to the earlier one.
func (p plea) SetDeadline(at time.Time) error {
	if at.IsZero() || at.After(p.until) {
		at = p.until
	}

	return p.Conn.SetDeadline(at)
}
