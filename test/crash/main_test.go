package crash

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/environment-broker/environment-broker/internal/postgrestest"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// database opens a new one for a world.
type database func(t *testing.T) *storage.DB

// scratch opens a new SQLite file, in memory where the system has such a folder: there are thousands of commits, and what a disk does
// with them is not what is tested.
func scratch(t *testing.T) *storage.DB {
	t.Helper()

	dir, err := os.MkdirTemp("/dev/shm", "crash")
	if err != nil {
		return storagetest.SQLite(t)
	}

	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})

	return storagetest.Open(t, storage.Config{Driver: storage.DriverSQLite, Path: filepath.Join(dir, "test.db")})
}
