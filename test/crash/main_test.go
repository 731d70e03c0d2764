package crash

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/postgrestest"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// database opens a new one for a world.
type database func(t *testing.T) *storage.DB

func scratch(t *testing.T) *storage.DB {
	t.Helper()

	return storagetest.Volatile(t)
}

func postgres(t *testing.T) *storage.DB {
	t.Helper()

	return storagetest.Open(t, postgrestest.Database(t))
}
