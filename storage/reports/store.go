package reports

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Store stores reports in plaintext, so their contents must not be secret. Its methods may be called from any goroutine.
type Store struct{ db *storage.DB }

// Open migrates the table and returns the store.
func Open(ctx context.Context, db *storage.DB) (*Store, error) {
	if err := db.Migrate(ctx, "reports", migrations, "migrations"); err != nil {
		return nil, err
	}

	return &Store{db: db}, nil
}

// maxEarly is the maximum time by which Claim accepts a claim before the report is due. It is longer than the variation of the time
// at which a ticker starts its work.
const maxEarly = time.Second

// Claim reports whether the caller must create the report now. Only one replica can claim a due report. After a claim, the report
// is due again at the time next, even if the replica fails or dies. In a new database, the first report is also due at the time
// next.
//
// A claim may be early by a tenth of the time until next, but at most by maxEarly. Otherwise, a caller that claims a report at each
// tick would miss every tick that its ticker delivers with a shorter delay than the one before.
func (s *Store) Claim(ctx context.Context, id string, now, next time.Time) (bool, error) {
	const share = 10

	latest := now.Add(min(maxEarly, next.Sub(now)/share))

	claimed, err := storage.Exec(ctx, s.db.Writer(), `UPDATE reports SET due_at = ? WHERE id = ? AND due_at <= ?`, storage.At(next), id, storage.At(latest))
	if err == nil && claimed == 0 {
		_, err = storage.Exec(ctx, s.db.Writer(), `INSERT INTO reports (id, due_at, content) VALUES (?, ?, '') ON CONFLICT (id) DO NOTHING`,
			id, storage.At(next))
	}

	return claimed == 1, failure.While(err, "claiming the report %s", id)
}

// Postpone makes a report due at the time next. The replica that has claimed the report calls Postpone to extend the claim and,
// when the report is finished, to schedule the next one.
func (s *Store) Postpone(ctx context.Context, id string, next time.Time) error {
	_, err := storage.Exec(ctx, s.db.Writer(), `UPDATE reports SET due_at = ? WHERE id = ?`, storage.At(next), id)

	return failure.While(err, "postponing the report %s", id)
}

// Save stores the result of a report as JSON, together with the time at which the report was finished. It does not change the time
// at which the next report is due. If the report was never claimed, the next one is due immediately.
func (s *Store) Save(ctx context.Context, id string, content any, at time.Time) error {
	encoded, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encoding the report %s: %w", id, err)
	}

	_, err = storage.Exec(ctx, s.db.Writer(), `INSERT INTO reports (id, due_at, content, finished_at) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET content = excluded.content, finished_at = excluded.finished_at`,
		id, storage.At(at), string(encoded), storage.At(at))

	return failure.While(err, "storing the report %s", id)
}

// Get decodes the newest result of a report into content, and returns the time at which this report was finished. If there is no
// result, the error is storage.ErrNotFound.
func (s *Store) Get(ctx context.Context, id string, content any) (time.Time, error) {
	row, err := storage.Get[struct {
		FinishedAt storage.Time `db:"finished_at"`
		Content    string       `db:"content"`
	}](ctx, s.db.Reader(), `SELECT finished_at, content FROM reports WHERE id = ? AND finished_at IS NOT NULL`, id)
	if err == nil {
		err = json.Unmarshal([]byte(row.Content), content)
	}

	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		err = fmt.Errorf("reading the report %s: %w", id, err)
	}

	return row.FinishedAt.Time, err
}

// scrapeTimeout limits the duration of the query while metrics are being scraped.
const scrapeTimeout = 2 * time.Second

// ForScrape decodes the newest result of a report into content, for metrics, and returns the time at which this report was
// finished. It returns false if there is no result. If the result cannot be read, it logs the error and also returns false.
func (s *Store) ForScrape(id string, content any, log logrus.FieldLogger) (finished time.Time, found bool) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()

	finished, err := s.Get(ctx, id, content)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		log.WithError(err).Warnf("metrics: reading the report %s failed", id)
	}

	return finished, err == nil
}
