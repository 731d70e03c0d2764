package runtimes_test

import (
	"errors"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/storage"
)

// TestPinRelease records two digests for a release. The first one must stay.
func TestPinRelease(t *testing.T) {
	each(t, func(b fixture) {
		if _, err := b.store.ReleaseDigest(b.Context(), "r", "1"); !errors.Is(err, storage.ErrNotFound) {
			b.Errorf("got %v", err)
		}

		for _, release := range []struct{ repository, version, digest, want string }{
			{"r", "1", "sha256:a", "sha256:a"}, {"r", "1", "sha256:b", "sha256:a"}, {"r", "2", "sha256:b", "sha256:b"}, {"s", "1", "sha256:c", "sha256:c"},
		} {
			got, err := b.store.PinRelease(b.Context(), release.repository, release.version, release.digest, time.Now())
			if err != nil || got != release.want {
				b.Errorf("%+v: got %s, %v", release, got, err)
			}

			if got, err := b.store.ReleaseDigest(b.Context(), release.repository, release.version); err != nil || got != release.want {
				b.Errorf("%+v: read %s, %v", release, got, err)
			}
		}
	})
}
