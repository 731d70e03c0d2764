package instances

import (
	"context"
	"errors"
	"fmt"

	"github.com/environment-broker/environment-broker/storage"
)

// FeedCursor returns how far the broker has followed the Provisioner's changes, or nothing.
func (s *Store) FeedCursor(ctx context.Context) (string, error) {
	cursor, err := storage.Get[string](ctx, s.db.Reader(), `SELECT cursor FROM feed_place WHERE id = 1`)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return "", fmt.Errorf("reading the place in the feed: %w", err)
	}

	return cursor, nil
}

// SaveFeedCursor keeps how far the broker has followed the Provisioner's changes.
func (s *Store) SaveFeedCursor(ctx context.Context, cursor string) error {
	_, err := storage.Exec(ctx, s.db.Writer(), `INSERT INTO feed_place (id, cursor) VALUES (1, ?)
		ON CONFLICT (id) DO UPDATE SET cursor = excluded.cursor`, cursor)
	if err != nil {
		return fmt.Errorf("keeping the place in the feed: %w", err)
	}

	return nil
}
