package auditlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// chainInterval is the interval at which the replica with the lease looks for new rows.
	chainInterval = 2 * time.Second
	// chainLease is the duration of the lease. The replica renews it when half of it has passed.
	chainLease = 10 * time.Second
	// chainBatch is the maximum number of records that a transaction adds. chainPause is the pause after each full batch, so that
	// requests are not delayed.
	chainBatch = 250
	chainPause = 20 * time.Millisecond
	// chainPage is the maximum number of table rows that a query examines.
	chainPage = 1000
	// A row is committed later than the time in its time column: nearly every row within usualDelay of this time, and every row
	// within longestDelay if the clocks agree. Therefore, each call of Pass again examines the rows from the time usualDelay before
	// the newest chained row. At intervals of wideEvery, and after a replica has taken the lease, Pass starts at the time
	// longestDelay before that row instead. addLate finds rows that are later.
	usualDelay   = 10 * time.Second
	longestDelay = 3 * time.Minute
	wideEvery    = time.Minute
	// longestYield is how long the chain may lag behind while requests have priority.
	longestYield = time.Minute
	// rechecked is the number of newest records that a replica checks after it has taken the lease. It checks whether their rows were
	// erased while the records were being added.
	rechecked = 20_000
)

// errLeaseLost reports that another replica has added records since this one read the head of the chain.
var errLeaseLost = errors.New("another replica has added records to the audit log chain")

// errYielded reports that Pass ended early because requests are waiting.
var errYielded = errors.New("requests are waiting")

// chainHead is the row of the audit_chain_head table.
type chainHead struct {
	Number       int64        `db:"number"`
	Hash         string       `db:"hash"`
	LeaseOwner   string       `db:"lease_owner"`
	LeaseUntil   storage.Time `db:"lease_until"`
	EntriesAt    storage.Time `db:"entries_at"`
	OperationsAt storage.Time `db:"operations_at"`
}

// newest returns the field that contains the newest time of the chained rows from the given source.
func (h *chainHead) newest(source string) *storage.Time {
	if source == chain.SourceOperation {
		return &h.OperationsAt
	}

	return &h.EntriesAt
}

// add creates the record for the row and makes it the new head of the chain. The returned record does not contain the row itself.
func (h *chainHead) add(row chainRow, now time.Time) chain.Record {
	record := chain.Record{
		Number: h.Number + 1, ChainedAt: chain.TimeText(storage.At(now).Time), Source: row.source, ID: row.ID,
		KeepUntil: string(row.KeepUntil), Row: row.row(),
	}
	record.Seal(h.Hash)

	record.Row = nil
	h.Number, h.Hash = record.Number, record.Hash

	// Ignore a time in the future. Otherwise the scans would skip all rows with earlier times until this time has passed.
	newest := h.newest(row.source)
	if at, err := time.Parse(time.RFC3339Nano, string(row.At)); err == nil && at.After(newest.Time) && !at.After(now) {
		*newest = storage.At(at)
	}

	return record
}

// ChainOptions configures a Chainer.
type ChainOptions struct {
	Clock clock.WithTicker
	Log   logrus.FieldLogger
	// Metrics registers the metrics. A registry can serve only one Chainer.
	Metrics prometheus.Registerer
	// Busy reports whether requests are waiting for a processor of this replica. In that case, the Chainer postpones its work, by at
	// most a minute. Busy must not block. If it is nil, the work is never postponed.
	Busy func() bool
}

// Chainer adds the committed rows of the audit log to its hash chain, see package chain. Only the replica with the lease adds
// rows. The lease only prevents duplicate work. Correctness does not depend on the lease, because each transaction fails if the
// head has changed.
type Chainer struct {
	ChainOptions

	store *Store
	owner string
	// wideAt is the time from which the next call of Pass starts longestDelay, and not only usualDelay, before the newest chained
	// row.
	wideAt time.Time
	// late contains the running searches for late rows. lateAt is the time from which the next call of Pass starts new ones.
	late   []lateSearch
	lateAt time.Time
	// checked is the number of the newest record whose row this replica has checked for a concurrent erasure. checkTo is the number
	// of the newest record that is due for this check. added is the head at the time of the last call of Pass that went back by
	// longestDelay. The records up to added become due at the next such call, because by then all concurrent erasures have been
	// committed.
	checked, checkTo, added int64
	lag                     prometheus.Gauge
	// leased is true if this replica had the lease at the end of the last call of Pass.
	leased atomic.Bool
	// caughtUp is when a call of Pass last found that all rows have a record.
	caughtUp time.Time
}

// Chain registers the metrics and returns a Chainer, whose Part the service must run.
func (s *Store) Chain(options ChainOptions) *Chainer {
	chainer := &Chainer{
		ChainOptions: options, store: s, owner: uuid.NewString(), caughtUp: options.Clock.Now(),
		lag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "environment_broker_audit_chain_lag_seconds",
			Help: "Time since this replica last found all rows of the audit log in the hash chain. 0 if another replica adds the records.",
		}),
	}
	options.Metrics.MustRegister(chainer.lag)

	return chainer
}

// Part returns a lifecycle.Part that calls Pass every chainInterval.
func (c *Chainer) Part() lifecycle.Part {
	return lifecycle.Periodic{Name: "audit chain", Every: chainInterval, Work: c.Pass, Clock: c.Clock, Log: c.Log}.Part()
}

// Pass adds a record for each row that has none, if this replica has the lease or can take it. It returns the first error. The next call
// continues with the remaining rows.
func (c *Chainer) Pass(ctx context.Context) error {
	holds, err := c.pass(ctx)
	c.leased.Store(holds && (err == nil || errors.Is(err, errYielded)))

	switch {
	case errors.Is(err, errYielded):
		c.lag.Set(c.Clock.Since(c.caughtUp).Seconds())

		return nil
	case err != nil && !errors.Is(err, errLeaseLost):
		c.lag.Set(c.Clock.Since(c.caughtUp).Seconds())

		return fmt.Errorf("adding records to the audit log chain: %w", err)
	case err == nil && holds:
		c.caughtUp = c.Clock.Now()
	}

	c.lag.Set(0)

	return nil
}

// holdsLease reports whether this replica had the lease at the end of the last call of Pass. Other background work on the chain
// uses the same lease, and must tolerate that two replicas briefly do the work at the same time.
func (c *Chainer) holdsLease() bool { return c.leased.Load() }

func (c *Chainer) pass(ctx context.Context) (holds bool, err error) {
	head, holds, err := c.lease(ctx)
	if err != nil || !holds {
		return holds, err
	}

	if c.yields() {
		return true, errYielded
	}

	delay := usualDelay
	if now := c.Clock.Now(); !now.Before(c.wideAt) {
		delay, c.wideAt, c.checkTo, c.added = longestDelay, now.Add(wideEvery), c.added, head.Number
	}

	if err := c.removeSalts(ctx); err != nil {
		return true, err
	}

	if head, err = c.addLate(ctx, head); err != nil {
		return true, err
	}

	scans := []*scan{newScan(chain.SourceEntry, head, delay), newScan(chain.SourceOperation, head, delay)}

	for {
		batch, err := c.next(ctx, scans)
		if err != nil || len(batch) == 0 {
			return true, err
		}

		if head, err = c.append(ctx, head, batch); err != nil {
			return true, err
		}

		if len(batch) >= chainBatch {
			c.lag.Set(c.Clock.Since(c.caughtUp).Seconds())

			if err := lifecycle.Pause(ctx, c.Clock, chainPause); err != nil {
				return true, err
			}

			if c.yields() {
				c.wideAt = time.Time{} // repeat the longer search, because this pass may have been one

				return true, errYielded
			}
		}
	}
}

// yields reports whether adding records must be postponed because requests are waiting.
func (c *Chainer) yields() bool {
	return c.Busy != nil && c.Busy() && c.Clock.Since(c.caughtUp) < longestYield
}

// lease reads the head of the chain. It takes the lease if the lease is free, and renews it if half of its duration has passed.
func (c *Chainer) lease(ctx context.Context) (chainHead, bool, error) {
	head, err := storage.Get[chainHead](ctx, c.store.db.Reader(),
		`SELECT number, hash, lease_owner, lease_until, entries_at, operations_at FROM audit_chain_head WHERE id = 1`)
	if err != nil {
		return head, false, err
	}

	now := c.Clock.Now()
	own, valid := head.LeaseOwner == c.owner, head.LeaseUntil.After(now)

	if valid && (!own || head.LeaseUntil.Sub(now) > chainLease/2) {
		return head, own, nil
	}

	taken, err := storage.Exec(ctx, c.store.db.Writer(), `UPDATE audit_chain_head SET lease_owner = ?, lease_until = ?
		WHERE id = 1 AND lease_owner = ? AND (lease_until IS NULL OR lease_until <= ? OR lease_owner = ?)`,
		c.owner, storage.At(now.Add(chainLease)), head.LeaseOwner, storage.At(now), c.owner)
	if err != nil || taken == 0 {
		return head, false, err
	}

	if !own {
		c.wideAt, c.caughtUp = time.Time{}, now
		c.late, c.lateAt = nil, time.Time{}
		c.checked = max(head.Number-rechecked, 0)
		c.checkTo, c.added = c.checked, c.checked
		c.Log.WithField("number", head.Number).Debug("audit: this replica adds the records to the chain")
	}

	return head, true, nil
}

// scan finds the rows of a source that have no record, in the order of their times.
type scan struct {
	source string
	after  position
	found  []rowKey
	ended  bool
}

// newScan returns a scan that starts at the time delay before the newest chained row, or at the oldest row if no row is chained.
func newScan(source string, head chainHead, delay time.Duration) *scan {
	scan := &scan{source: source}
	if newest := head.newest(source); !newest.IsZero() {
		scan.after.at = chain.TimeText(newest.Add(-delay))
	}

	return scan
}

// fill reads rows until s.found contains a full batch or the end of the table is reached.
func (s *scan) fill(ctx context.Context, tx storage.Tx) error {
	for len(s.found) < chainBatch && !s.ended {
		rows, last, more, err := unchained(ctx, tx, s.source, s.after, chainPage)
		if err != nil {
			return fmt.Errorf("finding rows without a record: %w", err)
		}

		s.found, s.after, s.ended = append(s.found, rows...), last, !more
	}

	return nil
}

// next returns about chainBatch rows without a record: the oldest ones that the scans have found.
func (c *Chainer) next(ctx context.Context, scans []*scan) ([]rowKey, error) {
	var batch []rowKey

	for _, scan := range scans {
		if err := scan.fill(ctx, c.store.db.Reader()); err != nil {
			return nil, err
		}

		batch = append(batch, scan.found...)
	}

	slices.SortStableFunc(batch, func(one, other rowKey) int {
		return cmp.Or(strings.Compare(one.at, other.at), strings.Compare(one.id, other.id))
	})

	return c.withRestored(ctx, scans, batch[:min(len(batch), chainBatch)])
}

// withRestored removes the batch from the scans, and returns it together with the operations that the restores and adoptions in
// the batch have inserted. Restored operations keep their original times, which may be earlier than the times of all rows that
// the scans examine.
func (c *Chainer) withRestored(ctx context.Context, scans []*scan, batch []rowKey) ([]rowKey, error) {
	taken, entries := map[string]bool{}, []string{}

	for _, key := range batch {
		taken[key.source+key.id] = true

		if key.source == chain.SourceEntry {
			entries = append(entries, key.id)
		}
	}

	if len(entries) > 0 {
		added, err := restored(ctx, c.store.db.Reader(), entries)
		if err != nil {
			return nil, fmt.Errorf("finding restored operations: %w", err)
		}

		for _, key := range added {
			if !taken[key.source+key.id] {
				taken[key.source+key.id] = true
				batch = append(batch, key)
			}
		}
	}

	for _, scan := range scans {
		scan.found = slices.DeleteFunc(scan.found, func(key rowKey) bool { return taken[key.source+key.id] })
	}

	return batch, nil
}

// append adds records for the rows after the head, and returns the new head. It fails with errLeaseLost if the head has changed.
func (c *Chainer) append(ctx context.Context, head chainHead, keys []rowKey) (chainHead, error) {
	now := c.Clock.Now()
	next, records := head, make([]chain.Record, 0, len(keys))

	for group := range slices.Chunk(keys, chainGroup) {
		rows, err := contents(ctx, c.store.db.Reader(), group)
		if err != nil {
			return head, fmt.Errorf("reading rows without a record: %w", err)
		}

		for _, row := range rows {
			records = append(records, next.add(row, now))
		}
	}

	err := c.store.db.InTx(ctx, func(tx storage.Tx) error {
		changed, err := storage.Exec(ctx, tx, `UPDATE audit_chain_head SET number = ?, hash = ?, entries_at = ?, operations_at = ?
			WHERE id = 1 AND number = ? AND hash = ? AND lease_owner = ?`,
			next.Number, next.Hash, next.EntriesAt, next.OperationsAt, head.Number, head.Hash, c.owner)
		if err == nil && changed == 0 {
			err = errLeaseLost
		}

		if err != nil {
			return err
		}

		return insertRecords(ctx, tx, records)
	})

	return next, err
}

// insertRecords adds the records in groups. The records of an incomplete group are added one by one, so that each connection
// prepares only two different statements.
func insertRecords(ctx context.Context, tx storage.Tx, records []chain.Record) error {
	const columns = 9

	for len(records) > 0 {
		count := 1
		if len(records) >= chainGroup {
			count = chainGroup
		}

		args := make([]any, 0, columns*count)
		for _, r := range records[:count] {
			args = append(args, r.Number, r.ChainedAt, r.Source, r.ID, timeArgument(r.KeepUntil), r.Salt, r.Personal, r.Content, r.Hash)
		}

		if _, err := storage.Exec(ctx, tx, `INSERT INTO audit_chain (number, chained_at, source, id, keep_until, salt, personal, content, hash)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`+strings.Repeat(", (?, ?, ?, ?, ?, ?, ?, ?, ?)", count-1), args...); err != nil {
			return fmt.Errorf("adding records: %w", err)
		}

		records = records[count:]
	}

	return nil
}

// timeArgument converts the result of chain.TimeText to an argument for a time column. An empty string becomes NULL.
func timeArgument(text string) any {
	if text == "" {
		return nil
	}

	return text
}

// removeSalts removes the salts of rows that were erased or removed while their records were being added. The triggers could not
// remove these salts, because the records did not exist yet. Each call checks one page of records, up to checkTo.
func (c *Chainer) removeSalts(ctx context.Context) error {
	last := min(c.checked+chainPage, c.checkTo)
	if last <= c.checked {
		return nil
	}

	numbers, err := storage.Select[int64](ctx, c.store.db.Reader(), `SELECT audit_chain.number FROM audit_chain
		LEFT JOIN audit ON audit_chain.source = '`+chain.SourceEntry+`' AND audit.id = audit_chain.id
		LEFT JOIN operations ON audit_chain.source = '`+chain.SourceOperation+`' AND operations.id = audit_chain.id
		WHERE audit_chain.number > ? AND audit_chain.number <= ? AND audit_chain.salt <> ''
			AND COALESCE(audit.erased_by, operations.erased_by, 'removed') <> ''`, c.checked, last)
	if err != nil {
		return fmt.Errorf("finding records of erased rows: %w", err)
	}

	for _, number := range numbers {
		if _, err := storage.Exec(ctx, c.store.db.Writer(), `UPDATE audit_chain SET salt = '' WHERE number = ?`, number); err != nil {
			return fmt.Errorf("removing the salt of an erased row: %w", err)
		}
	}

	c.checked = last

	return nil
}
