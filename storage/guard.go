package storage

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/lib/pq"
)

// cancelGrace is how long the server may take to confirm the cancellation of a call after the context of the call has ended.
const cancelGrace = time.Second

// guarding connects to PostgreSQL so that no call outlives its context by more than cancelGrace. lib/pq asks the server to
// cancel a call and then waits for the response. If the server is frozen or the network drops packets, this wait takes 15
// minutes.
type guarding struct {
	*pq.Connector

	// severalHosts is true if the connector tries several hosts. Its error then has no type by which IsUnavailable could recognize it.
	severalHosts bool
	// pooled is true for connections to a pooler in transaction mode.
	pooled bool
}

// guardedConnection makes reads and writes of its network connection fail soon after the context of a call has ended.
type guardedConnection struct {
	*preparedConnection

	line *line
	// inTransaction is true between BeginTx and the end of the transaction.
	inTransaction bool
	// unreplicated is true if the server has reported, since the last call, a commit that no synchronous standby has confirmed.
	unreplicated *atomic.Bool
	// broken is true if the connection must not be used again.
	broken atomic.Bool
}

// Connect implements driver.Connector.
func (g guarding) Connect(ctx context.Context) (driver.Conn, error) {
	line, own, unreplicated := &line{}, *g.Connector, &atomic.Bool{}
	own.Dialer(line)

	inner, err := preparing{unnamed: g.pooled, Connector: pq.ConnectorWithNoticeHandler(&own, reportUnreplicated(unreplicated))}.connect(ctx)
	if err != nil && g.severalHosts {
		return nil, errors.Join(errNoPrimary, err)
	}

	if err != nil {
		return nil, err
	}

	line.connected = true

	if err := checkPrimary(ctx, inner); err != nil {
		return nil, errors.Join(err, inner.Close())
	}

	return &guardedConnection{preparedConnection: inner, line: line, unreplicated: unreplicated}, nil
}

// during sets a deadline for the network connection if the context ends before the call has finished. The connection is then
// broken, because the deadline may have interrupted a protocol message. The caller calls finish when the call has ended.
//
// If commits is true, the call is not canceled. When the context ends, its connection breaks without the grace period: see
// line.committing.
func (c *guardedConnection) during(ctx context.Context, commits bool) (finish func()) {
	grace := cancelGrace
	if commits {
		grace = 0
	}

	c.line.committing.Store(commits)

	stop := context.AfterFunc(ctx, func() { _ = c.line.SetDeadline(time.Now().Add(grace)) })

	return func() {
		if !stop() {
			c.broken.Store(true)
		}

		c.line.committing.Store(false)
	}
}

// BeginTx implements driver.ConnBeginTx. The context applies to the whole transaction, so Commit and Rollback finish the call.
func (c *guardedConnection) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	finish := c.during(ctx, false)

	begun, err := c.preparedConnection.BeginTx(ctx, options)
	if err != nil {
		finish()

		return nil, err //nolint:wrapcheck // database/sql inspects the driver's own errors
	}

	c.inTransaction = true

	tx := guardedTx{Tx: begun, ctx: ctx, connection: c, finish: func() {
		c.inTransaction = false

		finish()
	}}

	if c.unnamed { // the pooler accepts this setting only in a transaction
		if _, err := c.driven.ExecContext(ctx, `SET LOCAL `+idleSetting, nil); err != nil {
			return nil, errors.Join(err, tx.Rollback())
		}
	}

	return tx, nil
}

// QueryContext implements driver.QueryerContext. The call lasts until the rows are closed.
func (c *guardedConnection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	finish := c.during(ctx, !c.inTransaction && !reads(query))

	rows, err := c.preparedConnection.QueryContext(ctx, query, args)
	if err != nil {
		finish()

		return nil, c.checked(err)
	}

	return guardedRows{rows, c, finish}, nil
}

// ExecContext implements driver.ExecerContext.
func (c *guardedConnection) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	defer c.during(ctx, !c.inTransaction)()

	result, err := c.preparedConnection.ExecContext(ctx, query, args)

	return result, c.checked(err)
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *guardedConnection) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	defer c.during(ctx, false)()

	return c.preparedConnection.PrepareContext(ctx, query) //nolint:wrapcheck // database/sql inspects the driver's own errors
}

// Ping implements driver.Pinger.
func (c *guardedConnection) Ping(ctx context.Context) error {
	defer c.during(ctx, false)()

	return c.preparedConnection.Ping(ctx) //nolint:wrapcheck // database/sql inspects the driver's own errors
}

// ResetSession implements driver.SessionResetter.
func (c *guardedConnection) ResetSession(ctx context.Context) error {
	if c.broken.Load() {
		return driver.ErrBadConn
	}

	return c.preparedConnection.ResetSession(ctx) //nolint:wrapcheck // database/sql inspects the driver's own errors
}

// IsValid implements driver.Validator.
func (c *guardedConnection) IsValid() bool { return !c.broken.Load() && c.preparedConnection.IsValid() }

// guardedTx is a transaction that stops watching its context when it ends.
type guardedTx struct {
	driver.Tx

	ctx        context.Context //nolint:containedctx // the context of BeginTx applies to the whole transaction
	connection *guardedConnection
	finish     func()
}

// Commit implements driver.Tx. A commit is not canceled: see line.committing.
func (t guardedTx) Commit() error {
	defer t.finish()

	t.connection.line.committing.Store(true)

	if err := t.ctx.Err(); err != nil { // a request to cancel may be on its way
		return errors.Join(err, t.Tx.Rollback())
	}

	return t.connection.checked(t.Tx.Commit())
}

// Rollback implements driver.Tx.
func (t guardedTx) Rollback() error {
	defer t.finish()

	return t.Tx.Rollback() //nolint:wrapcheck // database/sql inspects the driver's own errors
}

// guardedRows are rows that stop watching their context when they are closed.
type guardedRows struct {
	driver.Rows

	connection *guardedConnection
	finish     func()
}

// Next implements driver.Rows.
func (r guardedRows) Next(row []driver.Value) error {
	err := r.Rows.Next(row)
	if errors.Is(err, io.EOF) && r.connection.unreplicated.Load() {
		return errUnreplicated
	}

	return err //nolint:wrapcheck // database/sql inspects the driver's own errors
}

// Close implements driver.Rows.
func (r guardedRows) Close() error {
	defer r.finish()

	return r.connection.checked(r.Rows.Close())
}

// line dials the network connection of a database connection and stores it, so that deadlines can be set. lib/pq reaches the
// network only through line.
type line struct {
	net.Conn

	// connected is true once the database connection exists. lib/pq sends each cancel request on a new connection, so all later
	// dials are for cancel requests.
	connected bool
	// committing is true while a call may be committing. Such a call must not be canceled: if the server waits for a synchronous
	// standby, it would stop waiting, and clients would see rows that a failover loses. A call that is only abandoned stays
	// invisible until a standby has confirmed it.
	committing atomic.Bool
}

// errCommitting is the result of a request to cancel a commit.
var errCommitting = errors.New("a commit is not canceled")

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
	until := time.Now().Add(cancelGrace)

	if l.connected && l.committing.Load() {
		return nil, errCommitting
	}

	if l.connected {
		bounded, cancel := context.WithDeadline(ctx, until)
		defer cancel()

		ctx = bounded
	}

	dialed, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err //nolint:wrapcheck // lib/pq and database/sql inspect this error
	}

	if l.connected {
		return cancelConn{dialed, until}, nil
	}

	l.Conn = dialed

	return dialed, nil
}

// cancelConn is the connection of a cancel request. It caps every deadline, because lib/pq would otherwise wait for the server
// without one.
type cancelConn struct {
	net.Conn

	until time.Time
}

// SetDeadline sets the given deadline or the cap, whichever is earlier.
func (c cancelConn) SetDeadline(at time.Time) error {
	if at.IsZero() || at.After(c.until) {
		at = c.until
	}

	return c.Conn.SetDeadline(at)
}

// errStandby reports a server that replicates another server. A standby is read-only, and its data may be outdated.
var errStandby = errors.New("the server is a standby, not the primary")

// errNoPrimary reports that no host of a list is the primary, for example during a failover.
var errNoPrimary = errors.New("none of the hosts is the primary")

// codeReadOnly is PostgreSQL's code for a write on a read-only server or session.
const codeReadOnly = "25006"

// checkPrimary fails if the server is a standby. During a failover the host name may resolve to the old or the new primary.
func checkPrimary(ctx context.Context, opened driver.QueryerContext) error {
	rows, err := opened.QueryContext(ctx, `SELECT pg_is_in_recovery()`, nil)
	if err != nil {
		return fmt.Errorf("checking whether the server is the primary: %w", err)
	}

	follows := make([]driver.Value, 1)
	if err := errors.Join(rows.Next(follows), rows.Close()); err != nil {
		return fmt.Errorf("reading whether the server is the primary: %w", err)
	}

	if follows[0] == true {
		return errStandby
	}

	return nil
}
