package instances

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/storage"
)

// FeedCursor returns the cursor of the Provisioner's change feed, or "".
func (s *Store) FeedCursor(ctx context.Context) (string, error) {
	cursor, err := storage.Get[string](ctx, s.db.Reader(), `SELECT cursor FROM feed_place WHERE id = 1`)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return "", fmt.Errorf("reading the cursor of the change feed: %w", err)
	}

	return cursor, nil
}

// SaveFeedCursor stores the cursor of the Provisioner's change feed.
func (s *Store) SaveFeedCursor(ctx context.Context, cursor string) error {
	_, err := storage.Exec(ctx, s.db.Writer(), `INSERT INTO feed_place (id, cursor) VALUES (1, ?)
		ON CONFLICT (id) DO UPDATE SET cursor = excluded.cursor`, cursor)
	if err != nil {
		return fmt.Errorf("storing the cursor of the change feed: %w", err)
	}

	return nil
}

// CatalogSince returns since when the catalog with the entity tag is offered: since now, unless a replica has offered it before.
func (s *Store) CatalogSince(ctx context.Context, etag string, now time.Time) (time.Time, error) {
	since, err := storage.Get[storage.Time](ctx, s.db.Writer(), `INSERT INTO catalog_offered (id, etag, since) VALUES (1, ?, ?)
		ON CONFLICT (id) DO UPDATE SET etag = excluded.etag,
			since = CASE WHEN catalog_offered.etag = excluded.etag THEN catalog_offered.since ELSE excluded.since END
		RETURNING since`, etag, storage.At(now))
	if err != nil {
		return time.Time{}, fmt.Errorf("recording since when the catalog is offered: %w", err)
	}

	return since.Time, nil
}
