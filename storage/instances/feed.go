package instances

import (
	"context"
	"errors"
	"fmt"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// FeedCursor returns the cursor at which the broker continues to read the Provisioner's change feed, or "" if it has not read any
// page yet.
func (s *Store) FeedCursor(ctx context.Context) (string, error) {
	cursor, err := storage.Get[string](ctx, s.db.Reader(), `SELECT cursor FROM feed_place WHERE id = 1`)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return "", fmt.Errorf("reading the cursor of the change feed: %w", err)
	}

	return cursor, nil
}

// SaveFeedCursor stores the cursor of the Provisioner's change feed. All replicas share one cursor, and the last write wins. A
// replica may therefore read a page again. This is harmless, because it only wakes the same operations again.
func (s *Store) SaveFeedCursor(ctx context.Context, cursor string) error {
	_, err := storage.Exec(ctx, s.db.Writer(), `INSERT INTO feed_place (id, cursor) VALUES (1, ?)
		ON CONFLICT (id) DO UPDATE SET cursor = excluded.cursor`, cursor)

	return failure.While(err, "storing the cursor of the change feed")
}
