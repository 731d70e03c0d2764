package storage

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/lib/pq"
)

// cancelGrace is how long, after the context of a call has ended, the server may take to confirm that it has canceled the call.
const cancelGrace = time.Second

// guarding opens PostgreSQL connections on which no call outlives its context by more than cancelGrace. lib/pq asks the server to
// cancel a call and then waits for the response. If the server is frozen or the network drops packets, this wait takes 15 minutes.
type guarding struct {
	// hosts contains one connector for each host.
	hosts []host
	// searches limits the attempts to find the primary among several hosts.
	searches *searches
	// primary identifies the newest primary that any connection of the pool has reached.
	primary *primary
	// pooled is true for connections to a pooler in transaction mode.
	pooled bool
}

// guardedConnection is a connection whose network I/O fails soon after the context of a call has ended.
type guardedConnection struct {
	*preparedConnection

	line *line
	// primary is shared by all connections of the pool. server identifies the server of this connection. silences is the value that
	// primary.silences had when the connection was opened.
	primary  *primary
	server   server
	silences uint32
	// inTransaction is true from BeginTx to the end of the transaction.
	inTransaction bool
	// unreplicated is true if, since the last call, the server has reported a commit that no synchronous standby has confirmed.
	unreplicated *atomic.Bool
	// broken is true if the connection must not be used again.
	broken atomic.Bool
}

// Connect implements driver.Connector. If there are several hosts, it chooses the primary with the newest timeline.
func (g guarding) Connect(ctx context.Context) (driver.Conn, error) {
	var (
		opened *guardedConnection
		err    error
	)

	if len(g.hosts) == 1 {
		opened, err = g.open(ctx, g.hosts[0].Connector)
	} else {
		opened, err = g.searches.find(ctx, g.newest)
	}

	if err != nil {
		return nil, err
	}

	if err := g.primary.admit(opened); err != nil {
		return nil, errors.Join(err, opened.Close())
	}

	return opened, nil
}

// Driver implements driver.Connector.
func (guarding) Driver() driver.Driver { return &pq.Driver{} }

// open opens a connection to one host. It fails if the server is not a primary.
func (g guarding) open(ctx context.Context, host *pq.Connector) (*guardedConnection, error) {
	line, own, unreplicated := &line{opening: ctx}, *host, &atomic.Bool{}
	own.Dialer(line)

	silences := g.primary.silences.Load()

	inner, err := preparing{unnamed: g.pooled, Connector: pq.ConnectorWithNoticeHandler(&own, reportUnreplicated(unreplicated))}.connect(ctx)
	if err != nil {
		return nil, err
	}

	line.connected = true
	opened := &guardedConnection{preparedConnection: inner, line: line, unreplicated: unreplicated, primary: g.primary, silences: silences}

	opened.server, err = readServer(ctx, opened)
	if err == nil && !g.pooled {
		err = endAbandoned(ctx, opened)
	}

	if !line.stop() {
		err = errors.Join(ctx.Err(), err)
	}

	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}

	return opened, nil
}

// clientCheck is how often a server that runs a call checks whether its client is still connected, in the syntax of PostgreSQL.
const clientCheck = "5s"

// endAbandoned makes the server end calls whose client has closed the connection. The server ignores a request to cancel a call that
// arrives before the call, so without this, it would finish a search for nobody. Servers that cannot check their clients, such as
// those before PostgreSQL 14, keep their default. A commit that waits for a standby does not end.
func endAbandoned(ctx context.Context, opened driver.QueryerContext) error {
	_, err := selectRow(ctx, opened, `SELECT set_config('client_connection_check_interval', '`+clientCheck+`', false)`, 1)
	if _, refused := errors.AsType[*pq.Error](err); refused {
		return nil
	}

	return err
}

// during limits a call to the server. If the context ends before the call has finished, during sets a deadline for the network
// connection. The connection must then not be used again, because the deadline may have interrupted a protocol message. The caller
// must call finish when the call has ended.
//
// If commits is true, the call may commit and must not be canceled, see line.committing. In this case, the network connection
// fails as soon as the context ends, without the grace period.
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

	if c.unnamed {
		if err := c.beginPooled(ctx); err != nil {
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

	return c.checked(c.preparedConnection.Ping(ctx))
}

// ResetSession implements driver.SessionResetter.
func (c *guardedConnection) ResetSession(ctx context.Context) error {
	c.primary.noticeSilence()

	if c.broken.Load() || c.outdated() {
		return driver.ErrBadConn
	}

	return c.preparedConnection.ResetSession(ctx) //nolint:wrapcheck // database/sql inspects the driver's own errors
}

// IsValid implements driver.Validator.
func (c *guardedConnection) IsValid() bool {
	return !c.broken.Load() && !c.outdated() && c.preparedConnection.IsValid()
}

// guardedTx is a transaction that watches its context only until the commit or rollback.
type guardedTx struct {
	driver.Tx

	ctx        context.Context //nolint:containedctx // the context of BeginTx applies to the whole transaction
	connection *guardedConnection
	finish     func()
}

// Commit implements driver.Tx. A commit must not be canceled, see line.committing.
func (t guardedTx) Commit() error {
	defer t.finish()

	t.connection.line.committing.Store(true)

	if err := t.ctx.Err(); err != nil { // a cancel request may be in flight
		return errors.Join(err, t.Tx.Rollback())
	}

	return t.connection.checked(t.Tx.Commit())
}

// Rollback implements driver.Tx.
func (t guardedTx) Rollback() error {
	defer t.finish()

	return t.Tx.Rollback() //nolint:wrapcheck // database/sql inspects the driver's own errors
}

// guardedRows are rows that watch their context only until they are closed.
type guardedRows struct {
	driver.Rows

	connection *guardedConnection
	finish     func()
}

// Next implements driver.Rows.
func (r guardedRows) Next(row []driver.Value) error {
	err := r.Rows.Next(row)
	if !errors.Is(err, io.EOF) {
		return err //nolint:wrapcheck // database/sql inspects the driver's own errors
	}

	switch {
	case r.connection.unreplicated.Load():
		return errUnreplicated
	case r.connection.outdated():
		return errFormerPrimary
	}

	return err //nolint:wrapcheck // database/sql inspects the driver's own errors
}

// Close implements driver.Rows.
func (r guardedRows) Close() error {
	defer r.finish()

	return r.connection.checked(r.Rows.Close())
}
