package storage_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// eachConfig runs the test with the configuration of a new, empty database of each driver.
func eachConfig(t *testing.T, test func(t *testing.T, config storage.Config)) {
	t.Helper()

	t.Run("sqlite", func(t *testing.T) {
		test(t, storage.Config{Driver: storage.DriverSQLite, Path: filepath.Join(t.TempDir(), "test.db")})
	})
	t.Run("postgres", func(t *testing.T) { test(t, postgrestest.Database(t)) })
}

// migrations returns migration files. Each migration consists of an up statement and a down statement.
func migrations(statements ...[2]string) fs.FS {
	files := fstest.MapFS{}

	for i, statement := range statements {
		files[fmt.Sprintf("%05d_step.sql", i+1)] = &fstest.MapFile{
			Data: []byte("-- +goose Up\n" + statement[0] + ";\n-- +goose Down\n" + statement[1] + ";\n"),
		}
	}

	return files
}

var (
	makeCounter = [2]string{createCounter, "DROP TABLE counter"}
	countOne    = [2]string{"INSERT INTO counter VALUES (1)", "DELETE FROM counter"}
)

func TestReplicasThatStartTogetherMigrateOnce(t *testing.T) {
	eachConfig(t, func(t *testing.T, config storage.Config) {
		opened := make([]*storage.DB, 3)
		if config.Driver == storage.DriverSQLite {
			opened = opened[:1] // SQLite supports only one replica
		}

		var running sync.WaitGroup

		for i := range opened {
			opened[i] = storagetest.Open(t, config)
		}

		for _, db := range opened {
			running.Go(func() {
				// Like the services, each replica migrates one set after the other.
				for _, set := range []string{"one", "two"} {
					steps := migrations([2]string{"CREATE TABLE " + set + " (value BIGINT)", "DROP TABLE " + set})
					if err := db.Migrate(t.Context(), set, steps, "."); err != nil {
						t.Error(err)
					}
				}

				if err := db.Migrate(t.Context(), "counter", migrations(makeCounter, countOne), "."); err != nil {
					t.Error(err)
				}
			})
		}

		running.Wait()

		rows, err := storage.Select[int](t.Context(), opened[0].Reader(), `SELECT value FROM counter`)
		if diff := cmp.Diff([]int{1}, rows); diff != "" || err != nil {
			t.Errorf("%v, -want +got:\n%s", err, diff)
		}
	})
}

func TestFailedMigrationIsRetried(t *testing.T) {
	eachConfig(t, func(t *testing.T, config storage.Config) {
		db := storagetest.Open(t, config)
		broken := [2]string{"INSERT INTO counter VALUES (1), (NULL)", "DELETE FROM counter"}

		err := db.Migrate(t.Context(), "test", migrations(makeCounter, broken), ".")
		if err == nil || !strings.Contains(err.Error(), "migrating the test tables of "+config.Driver) {
			t.Fatalf("an invalid migration returns %v", err)
		}

		if rows, err := storage.Select[int](t.Context(), db.Reader(), `SELECT value FROM counter`); err != nil || len(rows) != 0 {
			t.Errorf("a failed migration left changes behind: %v, %v", rows, err)
		}

		for range 2 { // the second call changes nothing
			if err := db.Migrate(t.Context(), "test", migrations(makeCounter, countOne), "."); err != nil {
				t.Fatal(err)
			}
		}

		if got := counted(t, db); got != 1 {
			t.Errorf("the counter is %d", got)
		}
	})
}

func TestOlderReplicaLeavesNewerTablesAlone(t *testing.T) {
	eachConfig(t, func(t *testing.T, config storage.Config) {
		db := storagetest.Open(t, config)

		for _, steps := range []fs.FS{migrations(makeCounter, countOne), migrations(makeCounter)} {
			if err := db.Migrate(t.Context(), "test", steps, "."); err != nil {
				t.Fatal(err)
			}
		}

		if got := counted(t, db); got != 1 {
			t.Errorf("the counter is %d", got)
		}
	})
}

func TestEveryMigrationIsReversible(t *testing.T) {
	eachConfig(t, func(t *testing.T, config storage.Config) {
		db := storagetest.Open(t, config)
		before := tables(t, db)

		for _, set := range sets() {
			for range 2 {
				if err := db.Migrate(t.Context(), set.name, set.files(), "."); err != nil {
					t.Fatal(err)
				}

				migrateTo(t, config, set.name, set.files(), 0)

				if diff := cmp.Diff(append(before, "schema_"+set.name), tables(t, db)); diff != "" {
					t.Errorf("tables of %s, -want +got:\n%s", set.name, diff)
				}
			}

			execute(t, db, "DROP TABLE schema_"+set.name)
		}
	})
}

// tables lists the names of the existing tables.
func tables(t *testing.T, db *storage.DB) []string {
	t.Helper()

	query := `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name`
	if db.SkipLocked() == "" { // SQLite
		query = `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`
	}

	found, err := storage.Select[string](t.Context(), db.Reader(), query)
	if err != nil {
		t.Fatal(err)
	}

	return found
}

// migrateTo migrates a set up or down to a version.
func migrateTo(t *testing.T, config storage.Config, set string, files fs.FS, version int64) {
	t.Helper()

	dialect := goose.DialectSQLite3
	if config.Driver == storage.DriverPostgres {
		dialect = goose.DialectPostgres
	}

	db, err := sqlx.Open(config.Driver, dsn(config))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	versions, err := database.NewStore(dialect, "schema_"+set)
	if err != nil {
		t.Fatal(err)
	}

	provider, err := goose.NewProvider("", db.DB, files, goose.WithStore(versions))
	if err != nil {
		t.Fatal(err)
	}

	_, up := provider.UpTo(t.Context(), version)
	_, down := provider.DownTo(t.Context(), version)

	if err := errors.Join(up, down); err != nil {
		t.Fatal(err)
	}
}

// dsn returns a connection string for database/sql, for connections that bypass the package under test.
func dsn(config storage.Config) string {
	if config.Driver == storage.DriverSQLite {
		return config.Path
	}

	return fmt.Sprintf("user=%s password='%s' host=%s port=%s dbname=%s sslmode=%s",
		config.User, config.Password.Reveal(), config.Host, config.Port, config.Name, config.SSLMode)
}
