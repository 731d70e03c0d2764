package storage

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/gofrs/flock"
	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/semaphore"
	"modernc.org/sqlite"

	"github.com/environment-broker/environment-broker/internal/failure"
)

const (
	// postgresConnections is the pool size of one replica, far below PostgreSQL's default limit of 100 connections. Calls are
	// short, so a dozen connections suffice for all workers and requests. Each connection is a server process with a separate
	// catalog cache and separate plans.
	postgresConnections = 12
	// sqliteReaders is the number of read connections. There is one additional connection for writes.
	sqliteReaders = 4
	// connectionAge is the maximum age of a PostgreSQL connection. It ensures that replicas follow a host name that is moved to
	// another server.
	connectionAge = 30 * time.Minute
)

// Tx executes statements. InTx and InSnapshot provide a Tx that executes all of its statements in one transaction. Reader and
// Writer return a Tx that executes each statement in a separate transaction. Statements have `?` as placeholders; Exec, Select
// and Get convert the placeholders for the driver. Use these functions instead of the methods of Tx, which neither limit the
// duration of a call nor wait for a connection in order.
type Tx interface {
	sqlx.ExtContext
}

// DB is an open database. For SQLite, it has one connection for writes and several for reads. For PostgreSQL, it has one pool for
// both. Its methods may be called from any goroutine.
type DB struct {
	writer pool
	reader pool
	config Config
	// lock keeps other processes from opening the SQLite file. It is nil for PostgreSQL.
	lock *flock.Flock
}

// Open connects to the database and fails if the database does not respond. It fails if another DB has opened the same SQLite file, or
// if the file is damaged. It does not migrate, because each store migrates its own tables. The caller must close the DB after stopping
// everything that uses it.
func Open(ctx context.Context, config Config) (*DB, error) {
	db := &DB{config: config}

	var err error

	switch config.Driver {
	case DriverPostgres:
		db.writer, err = openPostgres(config, config.Pooler != "")
		db.reader = db.writer
	case DriverSQLite:
		return openFile(ctx, config)
	default:
		return nil, fmt.Errorf("unknown database driver %q: use %s or %s", config.Driver, DriverPostgres, DriverSQLite)
	}

	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", config, err)
	}

	if err := db.Ping(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}

	return db, nil
}

// openFile locks, opens and checks the SQLite file.
func openFile(ctx context.Context, config Config) (*DB, error) {
	db := &DB{config: config}

	var err error

	if db.lock, err = lockSQLite(config.Path); err != nil {
		return nil, fmt.Errorf("opening %s: %w", config, err)
	}

	if db.writer, err = openSQLite(config, 1); err == nil {
		db.reader, err = openSQLite(config, sqliteReaders)
	}

	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", config, err), db.release())
	}

	if err := db.checkIntegrity(ctx); err != nil {
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

// openPostgres opens connections to the server or, if pooled is true, to the pooler.
func openPostgres(config Config, pooled bool) (pool, error) {
	hosts, err := hostsOf(config.postgresDSN(pooled))
	if err != nil {
		return pool{}, err
	}

	newest := &primary{opened: time.Now(), silenceLimit: cmp.Or(config.silenceLimit, defaultSilenceLimit)}
	db := sqlx.NewDb(sql.OpenDB(guarding{hosts, newSearches(), newest, pooled}), DriverPostgres)
	db.SetConnMaxLifetime(connectionAge)

	return newPool(db, postgresConnections), nil
}

// Driver returns DriverPostgres or DriverSQLite. Use it only for statements that must differ between the two.
func (db *DB) Driver() string { return db.config.Driver }

// Ping fails if the database does not respond, or if a new connection reaches a standby. Readiness probes call it.
func (db *DB) Ping(ctx context.Context) error {
	if err := db.writer.PingContext(ctx); err != nil {
		return fmt.Errorf("connecting to %s: %w", db.config, cause(ctx, err))
	}

	return nil
}

// Close closes every connection. Open transactions are rolled back.
func (db *DB) Close() error {
	err := db.writer.Close()
	if db.reader != db.writer {
		err = errors.Join(err, db.reader.Close())
	}

	err = errors.Join(err, db.release())

	return failure.While(err, "closing %s", db.config)
}

// Reader returns the connections for queries outside of a transaction. Even on SQLite, these queries can run while a write is
// in progress.
func (db *DB) Reader() Tx { return db.reader }

// Writer returns the connections for single write statements. Each statement is a separate transaction, in one round trip instead
// of three.
func (db *DB) Writer() Tx { return db.writer }

// InTx runs work in a transaction. It commits if work returns nil. Otherwise it rolls the transaction back and returns the error.
// The transaction takes at most callLimit, unless the context has a deadline. If the commit fails, the caller does not know
// whether the changes are stored.
func (db *DB) InTx(ctx context.Context, work func(tx Tx) error) error {
	return db.writer.inTx(ctx, nil, work)
}

// InSnapshot runs work on the rows as they were at one point in time, regardless of concurrent commits. work can only read. On
// SQLite it does not wait for the writer. A single query needs no snapshot.
func (db *DB) InSnapshot(ctx context.Context, work func(tx Tx) error) error {
	return db.reader.inTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}, work)
}

// inTx implements InTx and InSnapshot.
func (p pool) inTx(ctx context.Context, options *sql.TxOptions, work func(tx Tx) error) error {
	ctx, end, err := begin(ctx, p)
	if err != nil {
		return err
	}

	defer end()

	sqlTx, err := p.BeginTxx(ctx, options)
	if err != nil {
		return fmt.Errorf("beginning a transaction: %w", cause(ctx, err))
	}

	tx := &transaction{Tx: sqlTx}

	// Release the connection even after a panic in work, because SQLite has only one connection for writes.
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
			err = errors.Join(err, fmt.Errorf("rolling back a transaction: %w", rollback))
		}

		return err
	}

	if err := tx.Commit(); err != nil {
		// If the context has ended, database/sql has already rolled the transaction back. The function cause then adds the error of the
		// context.
		return fmt.Errorf("committing a transaction: %w", cause(ctx, err))
	}

	for _, callback := range tx.afterCommit {
		callback()
	}

	return nil
}

// transaction is the Tx that InTx and InSnapshot pass to work.
type transaction struct {
	*sqlx.Tx

	afterCommit []func()
}

// AfterCommit calls the callback after the commit of the transaction, and never after a rollback. If tx is not a transaction,
// it calls the callback immediately. The callback must not block.
func AfterCommit(tx Tx, callback func()) {
	if open, is := tx.(*transaction); is {
		open.afterCommit = append(open.afterCommit, callback)

		return
	}

	callback()
}

// ForUpdate returns the SQL fragment that locks the rows of a subquery. It is empty for SQLite, which locks the whole database.
func (db *DB) ForUpdate() string {
	if db.config.Driver == DriverPostgres {
		return " FOR UPDATE"
	}

	return ""
}

// Bytewise returns the SQL fragment that makes the database compare the preceding string byte by byte. It is empty for SQLite,
// which always compares strings in this way. By default, PostgreSQL uses the locale of the database, which is slower and does not
// keep strings with the same prefix together.
func (db *DB) Bytewise() string {
	if db.config.Driver == DriverPostgres {
		return ` COLLATE "C"`
	}

	return ""
}

// JoinFirst returns the SQL fragment that joins each row with the first row of a table, in the given order, that meets the
// condition. The condition and the order name the columns of the table with its name, and the table has the key id. In PostgreSQL,
// the join is lateral: with a few thousand rows, the planner would otherwise read the whole table. SQLite has no lateral joins.
func (db *DB) JoinFirst(table, condition, order string) string {
	first := func(column string) string {
		return `(SELECT ` + column + ` FROM ` + table + ` WHERE ` + condition + ` ORDER BY ` + order + ` LIMIT 1)`
	}

	if db.config.Driver == DriverPostgres {
		return ` JOIN LATERAL ` + first(`*`) + ` AS ` + table + ` ON true`
	}

	return ` JOIN ` + table + ` ON ` + table + `.id = ` + first(table+`.id`)
}

// SkipLocked returns the SQL fragment that locks rows and skips rows that other transactions have locked. With the fragment,
// replicas that claim rows at the same time get different ones. It is empty for SQLite, which has only one writer.
func (db *DB) SkipLocked() string {
	if locks := db.ForUpdate(); locks != "" {
		return locks + " SKIP LOCKED"
	}

	return ""
}

// pool grants connections in the order in which they were requested. database/sql would give a free connection to a random waiter,
// so that, under load, one request in a hundred would wait four times as long as the others.
type pool struct {
	*sqlx.DB

	free *semaphore.Weighted
}

func newPool(db *sqlx.DB, connections int) pool {
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)

	return pool{DB: db, free: semaphore.NewWeighted(int64(connections))}
}
