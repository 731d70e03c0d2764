package runtimes

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/storage"
)

// ReleaseDigest returns the digest that PinRelease has recorded for a release, or storage.ErrNotFound.
func (s *Store) ReleaseDigest(ctx context.Context, repository, version string) (string, error) {
	digest, err := storage.Get[string](ctx, s.db.Reader(), `SELECT digest FROM releases WHERE repository = ? AND version = ?`, repository, version)
	if err != nil {
		return "", fmt.Errorf("reading the digest of release %s: %w", version, err)
	}

	return digest, nil
}

// PinRelease records the digest of a release for all replicas, unless a digest is already recorded, and returns the recorded digest.
func (s *Store) PinRelease(ctx context.Context, repository, version, digest string, at time.Time) (string, error) {
	if _, err := storage.Exec(ctx, s.db.Writer(), `INSERT INTO releases (repository, version, digest, pinned_at)
		VALUES (?, ?, ?, ?) ON CONFLICT (repository, version) DO NOTHING`, repository, version, digest, storage.At(at)); err != nil {
		return "", fmt.Errorf("storing the digest of release %s: %w", version, err)
	}

	pinned, err := storage.Get[string](ctx, s.db.Writer(), `SELECT digest FROM releases WHERE repository = ? AND version = ?`, repository, version)
	if err != nil {
		return "", fmt.Errorf("reading the digest of release %s: %w", version, err)
	}

	return pinned, nil
}
