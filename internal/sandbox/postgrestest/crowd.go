package postgrestest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// crowdTimeout is how long it may take until others have no connection left.
const crowdTimeout = 2 * time.Minute

// Crowd takes every connection that the server has, also those that others hold, until the returned function is called or the test ends.
func (s *Server) Crowd(tb testing.TB) (leave func()) {
	tb.Helper()

	crowd, err := sql.Open("postgres", s.dsn)
	if err != nil {
		tb.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(tb.Context(), crowdTimeout)
	defer cancel()

	taken, err := takeAll(ctx, crowd)

	leave = sync.OnceFunc(func() {
		for _, connection := range taken {
			_ = connection.Close()
		}

		// The server is told, and then takes a moment.
		if err := errors.Join(crowd.Close(), s.waitUntilReady(), s.waitUntilAlone()); err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(leave)

	if err != nil {
		tb.Fatal(err)
	}

	return leave
}

// takeAll returns as many connections as the server has.
func takeAll(ctx context.Context, crowd *sql.DB) ([]*sql.Conn, error) {
	first, err := crowd.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}

	taken := []*sql.Conn{first}

	var most int
	if err := first.QueryRowContext(ctx, `SELECT current_setting('max_connections')::int`).Scan(&most); err != nil {
		return taken, fmt.Errorf("asking how many connections there are: %w", err)
	}

	for len(taken) < most {
		if connection, err := crowd.Conn(ctx); err == nil {
			taken = append(taken, connection)

			continue
		}

		if _, err := first.ExecContext(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname <> current_database()`); err != nil {
			return taken, fmt.Errorf("ending the connections of others after %d of %d were taken: %w", len(taken), most, err)
		}
	}

	return taken, nil
}

// waitUntilAlone waits until nobody else is connected to the database in which the crowd was.
func (s *Server) waitUntilAlone() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), crowdTimeout)
	defer cancel()

	admin, err := sql.Open("postgres", s.dsn)
	if err != nil {
		return fmt.Errorf("connecting to PostgreSQL: %w", err)
	}

	admin.SetMaxOpenConns(1)

	defer func() { err = errors.Join(err, admin.Close()) }()

	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()

	for {
		var others int
		if err := admin.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&others); err != nil || others == 0 {
			return err //nolint:wrapcheck // the caller tells the test
		}

		<-tick.C
	}
}
