package eventlog

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// There are separate migrations for each database, because the syntax of triggers differs.
//
//go:embed migrations
var migrations embed.FS

const (
	// publishBatch is the maximum number of events that one transaction publishes. On SQLite, each statement inserts insertGroup
	// events. The remaining events of a batch are inserted one by one, so that only two different statements are prepared. On
	// PostgreSQL, one statement inserts all events.
	publishBatch = 250
	insertGroup  = 25
	// window is the maximum number of positions that one query examines. Otherwise, a query could examine the whole log if few events
	// match the filter.
	window = 5000
)

// Store publishes, reads and removes events. Database triggers create the events. The methods may be called from any goroutine.
type Store struct{ db *storage.DB }

// Open migrates the tables and returns the store. The operations, instances and orchestrations tables must exist. After the
// migration, triggers add an event for each change to their rows.
func Open(ctx context.Context, db *storage.DB) (*Store, error) {
	if err := db.Migrate(ctx, "events", migrations, "migrations/"+db.Driver()); err != nil {
		return nil, err
	}

	return &Store{db: db}, nil
}

// Head describes the range of positions in the log.
type Head struct {
	// Position is the position of the newest event. Removed is the position of the newest event that was removed by retention. Both
	// are 0 at first.
	Position int64 `db:"position"`
	Removed  int64 `db:"removed"`
}

// Head returns the range of positions in the log.
func (s *Store) Head(ctx context.Context) (Head, error) {
	head, err := storage.Get[Head](ctx, s.db.Reader(), `SELECT position, removed FROM events_head WHERE id = 1`)

	return head, failure.While(err, "reading the end of the event log")
}

// Publish moves committed events to the log, and returns their number. Any replica may call it at any time. It does nothing while another
// replica publishes.
func (s *Store) Publish(ctx context.Context, now time.Time) (int, error) {
	total := 0

	for {
		waiting, err := storage.Select[int](ctx, s.db.Reader(), `SELECT 1 FROM new_events ORDER BY seq LIMIT 1`)
		if err != nil || len(waiting) == 0 {
			return total, failure.While(err, "finding new events")
		}

		published := 0

		err = s.db.InTx(ctx, func(tx storage.Tx) error {
			published, err = s.publish(ctx, tx, now)

			return err
		})
		total += published

		if err != nil || published == 0 {
			return total, failure.While(err, "publishing events")
		}
	}
}

// publish moves a batch of events to the log. It locks the head first, so its second statement, the DELETE, starts after the
// previous batch was committed. The DELETE thus sees every event that was committed before any event of the previous batch.
func (s *Store) publish(ctx context.Context, tx storage.Tx, now time.Time) (int, error) {
	heads, err := storage.Select[int64](ctx, tx, `SELECT position FROM events_head WHERE id = 1`+s.db.SkipLocked())
	if err != nil || len(heads) == 0 {
		return 0, err
	}

	moved, err := storage.Select[newRow](ctx, tx, `DELETE FROM new_events WHERE seq IN (SELECT seq FROM new_events ORDER BY seq LIMIT ?)
		RETURNING seq, id, type, object, operation_id, kind, account, plan, region, state, reason, component, wave, happened_at`, publishBatch)
	if err != nil || len(moved) == 0 {
		return 0, err
	}

	slices.SortFunc(moved, func(one, other newRow) int { return cmp.Compare(one.Seq, other.Seq) })

	position, events := heads[0], make([]Event, 0, len(moved))

	for _, row := range moved {
		position++
		event := row.event(now)
		event.Position = position
		events = append(events, event)
	}

	if err := s.insert(ctx, tx, events, now); err != nil {
		return 0, err
	}

	_, err = storage.Exec(ctx, tx, `UPDATE events_head SET position = ? WHERE id = 1`, position)

	return len(moved), err
}

// insert adds the events to the log: on PostgreSQL in one statement, and on SQLite in groups of insertGroup.
func (s *Store) insert(ctx context.Context, tx storage.Tx, events []Event, now time.Time) error {
	if s.db.Driver() == storage.DriverPostgres {
		return insertArrays(ctx, tx, events, now)
	}

	return insertRows(ctx, tx, events, now)
}

// insertArrays adds the events in one statement, with an array for each column. On PostgreSQL, this takes a quarter less time than
// inserting a list of rows.
func insertArrays(ctx context.Context, tx storage.Tx, events []Event, now time.Time) error {
	var (
		positions, waves []int64
		texts            [textColumns][]string
		times            []time.Time
	)

	for _, event := range events {
		positions, waves, times = append(positions, event.Position), append(waves, int64(event.Wave)), append(times, storage.At(event.At).Time)

		for i, text := range event.texts() {
			texts[i] = append(texts[i], text)
		}
	}

	args := []any{storage.At(now), storage.Array(positions)}
	for _, column := range texts {
		args = append(args, storage.Array(column))
	}

	args = append(args, storage.Array(waves), storage.Array(times))
	arrays := "?::bigint[]" + strings.Repeat(", ?::text[]", textColumns) + ", ?::bigint[], ?::timestamptz[]"

	_, err := storage.Exec(ctx, tx, `INSERT INTO events (added_at, `+columns+`) SELECT ?::timestamptz, added.* FROM unnest(`+arrays+`) AS added`, args...)

	return failure.While(err, "adding events")
}

// insertRows adds the events in groups of insertGroup. The events of an incomplete group are inserted one by one.
func insertRows(ctx context.Context, tx storage.Tx, events []Event, now time.Time) error {
	const values = `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	for len(events) > 0 {
		count := 1
		if len(events) >= insertGroup {
			count = insertGroup
		}

		args := make([]any, 0, count*strings.Count(values, "?"))
		for _, event := range events[:count] {
			args = append(append(args, event.arguments()...), storage.At(now))
		}

		if _, err := storage.Exec(ctx, tx, `INSERT INTO events (`+columns+`, added_at) VALUES `+
			values+strings.Repeat(", "+values, count-1), args...); err != nil {
			return fmt.Errorf("adding events: %w", err)
		}

		events = events[count:]
	}

	return nil
}

// Filter selects events. Empty fields do not restrict the selection.
type Filter struct {
	Types []Type
	// Kinds selects events by the kind of the operation or, for an orchestration, by the kind of the upgrades that it starts.
	Kinds      []string
	InstanceID string
	Account    string
}

// Read returns at most limit events that the filter selects and whose positions are greater than after, in the order of their
// positions. It examines a limited number of positions and also returns the last examined position, which the caller passes as
// after in the next call. If the returned position equals after, there are no further events.
func (s *Store) Read(ctx context.Context, filter Filter, after int64, limit int) ([]Event, int64, error) {
	examined := window
	if len(filter.Types) == 0 && len(filter.Kinds) == 0 && filter.InstanceID == "" && filter.Account == "" {
		examined = limit
	}

	last, err := storage.Get[int64](ctx, s.db.Reader(), `SELECT COALESCE(max(position), 0) FROM (
		SELECT position FROM events WHERE position > ? ORDER BY position `+storage.Page(examined, 0)+`) AS examined`, after)
	if err != nil || last == 0 {
		return nil, after, failure.While(err, "finding events")
	}

	var conditions storage.Conditions

	conditions.Add(true, "position > ? AND position <= ?", after, last)
	conditions.Add(len(filter.Types) > 0, "type IN (?)", filter.Types)
	conditions.Add(len(filter.Kinds) > 0, "kind IN (?)", filter.Kinds)
	conditions.Add(filter.InstanceID != "", "instance_id = ?", filter.InstanceID)
	conditions.Add(filter.Account != "", "account = ?", filter.Account)
	where, args := conditions.Where()

	rows, err := storage.Select[Row](ctx, s.db.Reader(), `SELECT `+columns+` FROM events`+where+` ORDER BY position `+storage.Page(limit, 0), args...)
	if err != nil {
		return nil, after, failure.While(err, "reading events")
	}

	events := make([]Event, 0, len(rows))
	for _, row := range rows {
		events = append(events, row.Event())
	}

	if len(events) == limit {
		last = events[limit-1].Position
	}

	return events, last, nil
}
