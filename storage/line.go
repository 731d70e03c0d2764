package storage

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// line opens the network connection of a database connection and keeps it, so that the code in guard.go can set deadlines. lib/pq
// reaches the network only through line.
type line struct {
	net.Conn

	// opening is the context of Connect. If it ends before stop is called, opening the database connection fails.
	opening context.Context //nolint:containedctx // lib/pq passes no context to the startup messages
	stop    func() bool
	// connected is true once the database connection is open. After that, lib/pq dials only to send cancel requests, each on a new
	// connection.
	connected bool
	// committing is true while a call may be committing. Such a call must not be canceled. If the server is waiting for a synchronous
	// standby, a cancel request would end the wait, and clients would see rows that a failover loses. If the client only abandons the
	// call, its changes stay invisible until a standby has confirmed them.
	committing atomic.Bool
}

// errCommitting is returned when lib/pq dials to cancel a commit.
var errCommitting = errors.New("a commit must not be canceled")

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
	l.stop = context.AfterFunc(l.opening, func() { _ = dialed.SetDeadline(time.Unix(1, 0)) }) // any time in the past

	return dialed, nil
}

// cancelConn is the connection that sends a cancel request. It limits every deadline, because lib/pq would otherwise wait for the
// server indefinitely.
type cancelConn struct {
	net.Conn

	until time.Time
}

// SetDeadline sets the given deadline or the latest permitted one, whichever is earlier.
func (c cancelConn) SetDeadline(at time.Time) error {
	if at.IsZero() || at.After(c.until) {
		at = c.until
	}

	return c.Conn.SetDeadline(at)
}
