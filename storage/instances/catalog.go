package instances

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/storage"
)

// CatalogSince returns since when platforms are offered what has the entity tag: since now, unless another replica was told so before.
func (s *Store) CatalogSince(ctx context.Context, etag string, now time.Time) (time.Time, error) {
	since, err := storage.Get[storage.Time](ctx, s.db.Writer(), `INSERT INTO catalog_offered (id, etag, since) VALUES (1, ?, ?)
		ON CONFLICT (id) DO UPDATE SET etag = excluded.etag,
			since = CASE WHEN catalog_offered.etag = excluded.etag THEN catalog_offered.since ELSE excluded.since END
		RETURNING since`, etag, storage.At(now))
	if err != nil {
		return time.Time{}, fmt.Errorf("finding out since when the catalog is offered: %w", err)
	}

	return since.Time, nil
}
