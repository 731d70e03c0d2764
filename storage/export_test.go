package storage

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// PreparedQuery is a statement with its arguments, as the driver sends it to PostgreSQL.
type PreparedQuery struct {
	Text string
	Args []driver.Value
}

// OpenRecording opens a PostgreSQL database and calls record with every statement that the database receives.
func OpenRecording(config Config, record func(PreparedQuery)) (*DB, error) {
	connector, err := pq.NewConnector(config.postgresDSN(false))
	if err != nil {
		return nil, err
	}

	connections := newPool(sqlx.NewDb(sql.OpenDB(recorder{connector, record}), DriverPostgres), postgresConnections)

	return &DB{writer: connections, reader: connections, config: config}, nil
}

// ErrNoPrimary is errNoPrimary.
var ErrNoPrimary = errNoPrimary

// Searching returns connect with the limit for searches of the primary.
func Searching(connect func(ctx context.Context) error) func(ctx context.Context) error {
	limited := newSearches()

	return func(ctx context.Context) error {
		_, err := limited.find(ctx, func(ctx context.Context) (*guardedConnection, error) { return nil, connect(ctx) })

		return err
	}
}

type recorder struct {
	driver.Connector

	record func(PreparedQuery)
}

func (r recorder) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}

	opened, complete := conn.(recordable)
	if !complete {
		return nil, fmt.Errorf("the connection of lib/pq is a %T", conn)
	}

	return recording{opened, r.record}, nil
}

type recordable interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
}

type recording struct {
	recordable

	record func(PreparedQuery)
}

func (r recording) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	r.record(statementOf(query, args))

	return r.recordable.ExecContext(ctx, query, args)
}

func (r recording) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	r.record(statementOf(query, args))

	return r.recordable.QueryContext(ctx, query, args)
}

func statementOf(query string, args []driver.NamedValue) PreparedQuery {
	statement := PreparedQuery{Text: query}
	for _, arg := range args {
		statement.Args = append(statement.Args, arg.Value)
	}

	return statement
}

// Cause gives tests access to cause.
var Cause = cause

// WithSilenceLimit returns the configuration with a limit other than defaultSilenceLimit.
func WithSilenceLimit(config Config, limit time.Duration) Config {
	config.silenceLimit = limit

	return config
}
