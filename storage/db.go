package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"modernc.org/sqlite"
)

const (
	// postgresConnections bounds the pool of one replica: far below PostgreSQL's default of 100. Nobody holds a connection for long, so a
	// dozen is enough for all workers and requests; each one more is a process of PostgreSQL that reads the catalog and plans every
	// statement for itself.
	postgresConnections = 12
	// sqliteReaders bounds the connections that read while the one writer writes.
	sqliteReaders = 4
	// connectionAge is how long a PostgreSQL connection is kept, so that a moved database is found again.
	connectionAge = 30 * time.Minute
)

// Tx is what a store needs inside a transaction. Queries are written with `?` and rebound by the DB's functions.
type Tx interface {
	sqlx.ExtContext
}

// DB is an open database. SQLite has one connection that writes and several that read, PostgreSQL one pool for both.
type DB struct {
	writer pool
	reader pool
	config Config
}

// Open connects to the database and checks that it answers.
func Open(ctx context.Context, config Config) (*DB, error) {
	db := &DB{config: config}

	var err error

	switch config.Driver {
	case DriverPostgres:
		db.writer, err = openPostgres(config)
		db.reader = db.writer
	case DriverSQLite:
		if db.writer, err = openSQLite(config, 1); err == nil {
			db.reader, err = openSQLite(config, sqliteReaders)
		}
	default:
		return nil, fmt.Errorf("database driver %q is not known: use %s or %s", config.Driver, DriverPostgres, DriverSQLite)
	}

	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", config, err)
	}

	if err := db.Ping(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}

	return db, nil
}

func openSQLite(config Config, connections int) (pool, error) {
	connector, err := sqlite.NewConnector(config.sqliteDSN())
	if err != nil {
		return pool{}, err
	}

	return newPool(sqlx.NewDb(sql.OpenDB(preparing{Connector: connector, closes: true}), DriverSQLite), connections), nil
}

func openPostgres(config Config) (pool, error) {
	connector, err := pq.NewConnector(config.postgresDSN())
	if err != nil {
		return pool{}, err
	}

	db := sqlx.NewDb(sql.OpenDB(guarding{connector}), DriverPostgres)
	db.SetConnMaxLifetime(connectionAge)

	return newPool(db, postgresConnections), nil
}

// Driver is DriverPostgres or DriverSQLite, for what the two cannot write alike.
func (db *DB) Driver() string { return db.config.Driver }

// Ping reports whether the database answers.
func (db *DB) Ping(ctx context.Context) error {
	if err := db.writer.PingContext(ctx); err != nil {
		return fmt.Errorf("connecting to %s: %w", db.config, err)
	}

	return nil
}

// Close closes every connection.
func (db *DB) Close() error {
	err := db.writer.Close()
	if db.reader != db.writer {
		err = errors.Join(err, db.reader.Close())
	}

	if err != nil {
		return fmt.Errorf("closing %s: %w", db.config, err)
	}

	return nil
}

// Reader is for queries outside of a transaction.
func (db *DB) Reader() Tx { return db.reader }

// Writer is for a single statement that changes rows: it is a transaction of its own, in one round trip instead of three.
func (db *DB) Writer() Tx { return db.writer }

// InTx runs work in one transaction and commits it when work returns nil. It takes callLimit at most, unless the context says otherwise.
func (db *DB) InTx(ctx context.Context, work func(tx Tx) error) error {
	ctx, cancel := bounded(ctx)
	defer cancel()

	end, err := db.writer.turn(ctx)
	if err != nil {
		return err
	}

	defer end()

	begun, err := db.writer.BeginTxx(ctx, nil)
	if err != nil {
		return fmt.Errorf("beginning a transaction: %w", cause(ctx, err))
	}

	tx := &transaction{Tx: begun}

	// A panic in work goes on, but not with the connection: SQLite has only one that writes.
	finished := false

	defer func() {
		if !finished {
			_ = tx.Rollback()
		}
	}()

	err = work(tx)
	finished = true

	if err != nil {
		if rollback := tx.Rollback(); rollback != nil && !errors.Is(rollback, sql.ErrTxDone) {
			err = errors.Join(err, fmt.Errorf("rolling back: %w", rollback))
		}

		return err
	}

	if err := tx.Commit(); err != nil {
		// A context that ended meanwhile has rolled the transaction back.
		return fmt.Errorf("committing: %w", cause(ctx, err))
	}

	for _, follow := range tx.afterwards {
		follow()
	}

	return nil
}

// transaction is the Tx of InTx.
type transaction struct {
	*sqlx.Tx

	afterwards []func()
}

// AfterCommit has follow called once what the transaction changed is stored, and not at all when it is rolled back. Outside of a transaction
// that is at once. It must not block.
func AfterCommit(tx Tx, follow func()) {
	if open, is := tx.(*transaction); is {
		open.afterwards = append(open.afterwards, follow)

		return
	}

	follow()
}

// ForUpdate is the fragment that locks the rows of a subquery. SQLite locks the whole database.
func (db *DB) ForUpdate() string {
	if db.config.Driver == DriverPostgres {
		return " FOR UPDATE"
	}

	return ""
}

// SkipLocked is the fragment that lets several claimers pass by each other's rows. SQLite has one writer and needs none.
func (db *DB) SkipLocked() string {
	if locks := db.ForUpdate(); locks != "" {
		return locks + " SKIP LOCKED"
	}

	return ""
}
