package harness

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// Database returns the settings of a new, empty database for a service, "broker" or "provisioner".
type Database func(tb testing.TB, service string) replica.Database

// EachDatabase runs the test once on SQLite and once on PostgreSQL, as subtests.
func EachDatabase(t *testing.T, test func(t *testing.T, database Database)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, SQLite) })
	t.Run("postgres", func(t *testing.T) { test(t, Postgres) })
}

// SQLite is a [Database] in a file that is removed when the test ends.
func SQLite(tb testing.TB, service string) replica.Database {
	tb.Helper()

	settings := replica.DefaultConfig(service, storage.DriverSQLite).Database
	settings.Path = filepath.Join(tb.TempDir(), service+".db")
	settings.SecretKeys = secret.NewKey("test")

	return settings
}

// Postgres is a [Database] on the PostgreSQL server that all tests share.
func Postgres(tb testing.TB, service string) replica.Database {
	tb.Helper()

	return PostgresSettings(postgrestest.Database(tb), service)
}

// PostgresSettings returns the settings with which a service, "broker" or "provisioner", uses the given PostgreSQL database.
func PostgresSettings(database storage.Config, service string) replica.Database {
	settings := replica.DefaultConfig(service, storage.DriverPostgres).Database
	settings.User, settings.Password = database.User, database.Password
	settings.Host, settings.Port = database.Host, database.Port
	settings.Name, settings.SSLMode = database.Name, database.SSLMode
	settings.SecretKeys = secret.NewKey("test")

	return settings
}

// OpenDatabase opens the database of a running service for a test that reads or changes rows. The connections are closed when
// the test ends.
func OpenDatabase(tb testing.TB, settings replica.Database) *storage.DB {
	tb.Helper()

	config, err := settings.Storage()
	if err != nil {
		tb.Fatal(err)
	}

	if config.Driver == storage.DriverSQLite {
		config.Path = linkTo(tb, config.Path)
	}

	return storagetest.Open(tb, config)
}

// OpenSealed is like [OpenDatabase], but also returns the keys with which the service seals values.
func OpenSealed(tb testing.TB, settings replica.Database) (*storage.DB, *secret.Keyring) {
	tb.Helper()

	keys, err := settings.Keys()
	if err != nil {
		tb.Fatal(err)
	}

	return OpenDatabase(tb, settings), keys
}

// linkTo creates a symbolic link to a SQLite file and returns its path. The test cannot open the file under its original name,
// because the running service has locked that name. SQLite itself resolves links, so both names share one write-ahead log.
func linkTo(tb testing.TB, path string) string {
	tb.Helper()

	link := filepath.Join(tb.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		tb.Fatal(err)
	}

	return link
}
