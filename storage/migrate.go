package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"

	"github.com/environment-broker/environment-broker/internal/failure"
)

const (
	// lockPause is the pause between two attempts to get the migration lock, in seconds. lockTries is the number of attempts. A
	// replica thus waits up to five minutes for the lock.
	lockPause = 1
	lockTries = 300
)

// Migrate applies to a set of tables those migrations in the folder that were not applied to the set before. Each set has its own
// version table, `schema_<set>`, so the tables of the stores in one database evolve independently. Replicas that start at the
// same time migrate one after the other; a SQLite file is used by only one replica. A migration that fails is rolled back, and
// the next start of a replica tries it again.
func (db *DB) Migrate(ctx context.Context, set string, files fs.FS, folder string) error {
	migrations, err := fs.Sub(files, folder)
	if err != nil {
		return fmt.Errorf("reading the migrations of the %s tables: %w", set, err)
	}

	return failure.While(db.migrate(ctx, set, migrations), "migrating the %s tables of %s", set, db.config)
}

func (db *DB) migrate(ctx context.Context, set string, migrations fs.FS) (err error) {
	connections, end, err := db.migrationConnections()
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, end()) }()

	provider, err := db.migrationProvider(connections, set, migrations)
	if err != nil {
		return err
	}

	_, err = provider.Up(ctx)

	return err
}

// migrationConnections returns the connections for migrations, and a function that releases them. Migrations do not use the
// pooler, because the migration lock belongs to a session.
func (db *DB) migrationConnections() (connections *sql.DB, end func() error, err error) {
	if db.config.Pooler == "" {
		return db.writer.DB.DB, func() error { return nil }, nil
	}

	direct, err := openPostgres(db.config, false)
	if err != nil {
		return nil, nil, err
	}

	return direct.DB.DB, direct.Close, nil
}

func (db *DB) migrationProvider(connections *sql.DB, set string, migrations fs.FS) (*goose.Provider, error) {
	dialect := goose.DialectSQLite3
	options := []goose.ProviderOption{}

	if db.config.Driver == DriverPostgres {
		dialect = goose.DialectPostgres

		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockPause, lockTries))
		if err != nil {
			return nil, fmt.Errorf("creating the migration lock: %w", err)
		}

		options = append(options, goose.WithSessionLocker(locker))
	}

	store, err := database.NewStore(dialect, "schema_"+set)
	if err != nil {
		return nil, fmt.Errorf("naming the version table: %w", err)
	}

	provider, err := goose.NewProvider("", connections, migrations, append(options, goose.WithStore(store))...)

	return provider, failure.While(err, "reading migrations")
}
