package postgrestest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// connectionsTimeout limits the opening of all connections of a server, and the wait for the end of sessions. Clients that reconnect
// in a loop compete for connection slots, so opening all of them can take many attempts.
const connectionsTimeout = 2 * time.Minute

// ExhaustConnections terminates the connections of all other clients and opens every connection that the server allows, until
// release is called or the test ends. During that time, new connections fail with the error too_many_connections (53300). release
// waits until the connection slots are free again; repeated calls have no effect.
func (s *Server) ExhaustConnections(tb testing.TB) (release func()) {
	tb.Helper()

	db, err := sql.Open("postgres", s.dsn)
	if err != nil {
		tb.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(tb.Context(), connectionsTimeout)
	defer cancel()

	taken, err := takeAll(ctx, db)

	release = sync.OnceFunc(func() {
		for _, connection := range taken {
			_ = connection.Close()
		}

		// Wait, because the server frees the connection slots only after a short delay.
		if err := errors.Join(db.Close(), s.waitUntilReady(), s.waitUntilAlone()); err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(release)

	if err != nil {
		tb.Fatal(err)
	}

	return release
}

// takeAll opens every connection that the server allows. It terminates the connections of other clients and tries again, because
// these clients reconnect. If it fails, it returns the open connections so that the caller can close them. The test connects as a
// superuser, so it also occupies the slots that PostgreSQL reserves for superusers.
func takeAll(ctx context.Context, db *sql.DB) ([]*sql.Conn, error) {
	first, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}

	taken := []*sql.Conn{first}

	var most int
	if err := first.QueryRowContext(ctx, `SELECT current_setting('max_connections')::int`).Scan(&most); err != nil {
		return taken, fmt.Errorf("reading max_connections: %w", err)
	}

	for len(taken) < most {
		if connection, err := db.Conn(ctx); err == nil {
			taken = append(taken, connection)

			continue
		}

		if _, err := first.ExecContext(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname <> current_database()`); err != nil {
			return taken, fmt.Errorf("terminating the connections of other clients after opening %d of %d connections: %w", len(taken), most, err)
		}
	}

	return taken, nil
}

// waitUntilAlone waits until no other client is connected to the postgres database, in which takeAll opens its connections.
// PostgreSQL ends the process of a closed connection after a delay, and until then the process occupies a slot.
func (s *Server) waitUntilAlone() error {
	return waitUntilNone(s.dsn, `datname = current_database() AND pid <> pg_backend_pid()`)
}

// WaitForEnd waits until the shared server no longer lists a session. process is the session's pg_backend_pid.
func WaitForEnd(tb testing.TB, process int) {
	tb.Helper()

	if err := waitUntilNone(sharedServer(tb), `pid = $1`, process); err != nil {
		tb.Fatalf("waiting for the end of a session: %v", err)
	}
}

// waitUntilNone waits until no row of pg_stat_activity meets the condition.
func waitUntilNone(dsn, condition string, args ...any) (err error) {
	admin, err := sql.Open("postgres", dsn)
	if err != nil {
		return fmt.Errorf("connecting to PostgreSQL: %w", err)
	}

	admin.SetMaxOpenConns(1)

	defer func() { err = errors.Join(err, admin.Close()) }()

	const pause = 20 * time.Millisecond

	return wait.PollUntilContextTimeout(context.Background(), pause, connectionsTimeout, true, func(ctx context.Context) (bool, error) {
		var count int

		err := admin.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity WHERE `+condition, args...).Scan(&count)

		return count == 0, err
	})
}
