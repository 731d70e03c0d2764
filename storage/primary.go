package storage

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lib/pq"
)

// defaultSilenceLimit is how long the database may be silent, that is, answer no call, before all connections to it are replaced.
// The limit must be shorter than the duration of a failover that the former primary does not notice. Patroni waits at least 20 s
// before such a failover. Engines call the database every second, so a longer silence means that the database or this process was
// stopped.
const defaultSilenceLimit = 5 * time.Second

// errStandby reports a server that replicates another server. A standby is read-only, and its data may be outdated.
var errStandby = errors.New("the server is a standby, not the primary")

// errNoPrimary reports that none of the hosts in Config.Host is the primary, for example during a failover.
var errNoPrimary = errors.New("none of the hosts is the primary")

// errFormerPrimary reports a connection to a server that may have been replaced as the primary without knowing it, for example because
// its machine was paused. Its answers may be outdated, and commits on it may be lost.
var errFormerPrimary = errors.New("the server may be a former primary: another server was promoted in the meantime, or the server was " +
	"paused (restart the service if an operator has returned to a former primary on purpose)")

// errOtherCluster reports that a server belongs to a different PostgreSQL cluster than the server of the earlier connections.
var errOtherCluster = errors.New("the server belongs to another PostgreSQL cluster: correct APP_DATABASE_HOST, " +
	"or restart the service if the database was moved to a new cluster")

// codeReadOnly is the SQLSTATE for a write on a read-only server or session.
const codeReadOnly = "25006"

// server identifies a primary. A failover increases timeline but keeps system. Both are 0 if PostgreSQL does not report them,
// because some managed services forbid these queries.
type server struct {
	system   uint64
	timeline uint32
}

// compatible reports whether both servers may belong to the same PostgreSQL cluster.
func (s server) compatible(other server) bool {
	return s.system == other.system || s.system == 0 || other.system == 0
}

// selectTimeline is an SQL expression for the name of the current WAL file. The name begins with the timeline, as eight
// hexadecimal digits. On a standby, the value is empty.
const selectTimeline = `CASE WHEN pg_is_in_recovery() THEN '' ELSE pg_walfile_name(pg_current_wal_lsn()) END`

// readServer identifies the server at the other end of a new connection. It fails if the server is a standby. During a failover, a
// host name may resolve to the former or the new primary.
func readServer(ctx context.Context, opened driver.QueryerContext) (server, error) {
	values, err := selectRow(ctx, opened, `SELECT pg_is_in_recovery(), `+selectTimeline+`, (SELECT system_identifier::text FROM pg_control_system())`, 3)
	if pqErr, ok := errors.AsType[*pq.Error](err); ok && unsupported(string(pqErr.Code)) {
		values, err = selectRow(ctx, opened, `SELECT pg_is_in_recovery(), '', '0'`, 3)
	}

	if err != nil {
		return server{}, fmt.Errorf("checking whether the server is the primary: %w", err)
	}

	if values[0] == true {
		return server{}, errStandby
	}

	system, err := strconv.ParseUint(text(values[2]), 10, 64)
	if err != nil {
		return server{}, fmt.Errorf("reading the system identifier of the server: %w", err)
	}

	timeline, err := timelineOf(text(values[1]))

	return server{system, timeline}, err
}

// unsupported reports whether a SQLSTATE means that the server lacks a function or feature, or that the user may not use it.
func unsupported(code string) bool {
	return strings.HasPrefix(code, "42") || strings.HasPrefix(code, "0A")
}

// timelineOf returns the timeline in the name of a WAL file, or 0 if the name is empty.
func timelineOf(file string) (uint32, error) {
	const digits = 8

	if len(file) < digits {
		return 0, nil
	}

	timeline, err := strconv.ParseUint(file[:digits], 16, 32)
	if err != nil {
		return 0, fmt.Errorf("reading the timeline of the server: %w", err)
	}

	return uint32(timeline), nil
}

// text converts a value from lib/pq to a string. With binary parameters, strings arrive as bytes.
func text(value driver.Value) string { return fmt.Sprintf("%s", value) }

// selectRow runs a query and returns the values of its only row.
func selectRow(ctx context.Context, opened driver.QueryerContext, query string, columns int) ([]driver.Value, error) {
	rows, err := opened.QueryContext(ctx, query, nil)
	if err != nil {
		return nil, err //nolint:wrapcheck // the callers say what they read
	}

	values := make([]driver.Value, columns)

	return values, errors.Join(rows.Next(values), rows.Close())
}

// primary records the newest primary that the connections of a pool have reached. Without this record, a pool would continue to
// use a former primary that was paused during the failover, until the connections to it end.
type primary struct {
	// silenceLimit is defaultSilenceLimit, unless a test replaces it.
	silenceLimit time.Duration
	// opened is when the pool was opened.
	opened time.Time

	// system and timeline identify the newest primary so far.
	system   atomic.Uint64
	timeline atomic.Uint32
	// answered is when the database last answered, in nanoseconds since opened. silences counts the periods without an answer that
	// were longer than silenceLimit.
	answered atomic.Int64
	silences atomic.Uint32
}

// noticeSilence makes all connections outdated if the database has not answered for longer than silenceLimit. During this
// silence, the server may have been paused, replaced as the primary, and resumed. Call noticeSilence before a connection of the
// pool is used again.
func (p *primary) noticeSilence() {
	last, now := p.answered.Load(), int64(time.Since(p.opened))
	if now-last > int64(p.silenceLimit) && p.answered.CompareAndSwap(last, now) {
		p.silences.Add(1)
	}
}

// admit fails if a new connection leads to a former primary or to another PostgreSQL cluster. Otherwise it records the timeline of
// the server, which makes connections with an older timeline outdated.
func (p *primary) admit(opened *guardedConnection) error {
	p.system.CompareAndSwap(0, opened.server.system)

	if !opened.server.compatible(server{system: p.system.Load()}) {
		return errOtherCluster
	}

	for newest := p.timeline.Load(); newest < opened.server.timeline; newest = p.timeline.Load() {
		p.timeline.CompareAndSwap(newest, opened.server.timeline)
	}

	if opened.outdated() {
		return errFormerPrimary
	}

	p.noticeAnswer()

	return nil
}

// noticeAnswer records that the database has answered now.
func (p *primary) noticeAnswer() { p.answered.Store(int64(time.Since(p.opened))) }

// outdated reports whether the connection may lead to a former primary, because another connection has reached a newer primary or
// because the database has been silent for too long since the connection was opened.
func (c *guardedConnection) outdated() bool {
	return c.silences != c.primary.silences.Load() || c.former(c.server.timeline)
}

// former reports whether a timeline is older than the timeline of the newest primary.
func (c *guardedConnection) former(timeline uint32) bool {
	return timeline != 0 && timeline < c.primary.timeline.Load()
}

// beginPooled sets the time limit for idle transactions, which a pooler permits only inside a transaction. The same query reads
// the timeline, because the pooler may use a connection to a former primary.
func (c *guardedConnection) beginPooled(ctx context.Context) error {
	values, err := selectRow(ctx, c.driven, `SELECT set_config('`+idleSetting+`', '`+idleLimit+`', true), `+c.timelineColumn(), 2)
	if err != nil {
		return err
	}

	timeline, err := timelineOf(text(values[1]))
	if err == nil && c.former(timeline) {
		c.broken.Store(true)

		return errFormerPrimary
	}

	return err
}

// timelineColumn returns selectTimeline, or the SQL for an empty string if the server does not support it.
func (c *guardedConnection) timelineColumn() string {
	if c.server.timeline == 0 {
		return `''`
	}

	return selectTimeline
}
