package storage_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestIsUnavailable(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"nobody listens":       {"the server may come up", refused, true},
		"no answer in time":    {"the server may be busy", context.DeadlineExceeded, true},
		"connection broke":     {"the next one may hold", driver.ErrBadConn, true},
		"connection closed":    {"the next one may hold", sql.ErrConnDone, true},
		"connection failure":   {"class 08 is about connections", &pq.Error{Code: "08006"}, true},
		"too many connections": {"others give theirs back", &pq.Error{Code: "53300"}, true},
		"hung up":              {"a proxy whose server is away hangs up while one connects", io.EOF, true},
		"disk full":            {"an operator makes room", &pq.Error{Code: "53100"}, true},
		"server stops":         {"another one takes over", &pq.Error{Code: "57P01"}, true},
		"server starts":        {"it is about to answer", &pq.Error{Code: "57P03"}, true},
		"deadlock":             {"the other one goes on, and this one may then", &pq.Error{Code: "40P01"}, true},
		"not serialized":       {"PostgreSQL asks for another try", &pq.Error{Code: "40001"}, true},
		"read only":            {"another server has taken over, and will be found", &pq.Error{Code: "25006"}, true},
		"statement too slow":   {"the server's own limit, and it may be quicker later", &pq.Error{Code: "57014"}, true},
		"lock is held":         {"who holds it goes on", &pq.Error{Code: "55P03"}, true},
		"canceled by a caller": {"nobody waits for the answer", errors.Join(context.Canceled, &pq.Error{Code: "57014"}), false},
		"duplicate":            {"the same call fails again", &pq.Error{Code: "23505"}, false},
		"no such table":        {"the same call fails again", &pq.Error{Code: "42P01"}, false},
		"wrong password":       {"an operator has to act", &pq.Error{Code: "28P01"}, false},
		"caller went away":     {"nobody waits for the answer", context.Canceled, false},
		"dial of one who left": {"nobody waits for the answer", &net.OpError{Op: "dial", Net: "tcp", Err: context.Canceled}, false},
		"not found":            {"the database has answered", storage.ErrNotFound, false},
		"something else":       {"what nobody explained is no reason to try again", errors.New("connection refused"), false},
		"nothing":              {"there is no error", nil, false},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := storage.IsUnavailable(c.err); got != c.want {
				t.Errorf("%s: got %t for %v", c.reason, got, c.err)
			}

			if c.err != nil && storage.IsUnavailable(fmt.Errorf("reading: %w", c.err)) != c.want {
				t.Errorf("%s: wrapped, it means something else", c.reason)
			}
		})
	}
}

func TestPostgresTerminationIsUnavailable(t *testing.T) {
	db := storagetest.Open(t, postgrestest.Database(t))

	err := db.InTx(t.Context(), func(tx storage.Tx) error {
		_, err := storage.Exec(t.Context(), tx, `SELECT pg_terminate_backend(pg_backend_pid())`)

		return err
	})
	if !storage.IsUnavailable(err) {
		t.Errorf("a server that ends the connection gives %v", err)
	}

	if err := db.Ping(t.Context()); err != nil {
		t.Errorf("the next connection gives %v", err)
	}
}

func TestBusySQLiteIsUnavailable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	db := storagetest.Open(t, storage.Config{Driver: storage.DriverSQLite, Path: path})

	// A connection that does not wait like a DB.
	impatient, err := sqlx.Open(storage.DriverSQLite, "file:"+path+"?_pragma=busy_timeout(1)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := impatient.Close(); err != nil {
			t.Error(err)
		}
	})

	err = db.InTx(t.Context(), func(storage.Tx) error {
		_, err := impatient.BeginTxx(t.Context(), nil)

		return err
	})
	if !storage.IsUnavailable(err) || storage.IsDuplicate(err) {
		t.Errorf("a file that another one writes to gives %v", err)
	}
}

func TestReadOnlySQLiteIsUnavailable(t *testing.T) {
	db := storagetest.SQLite(t)
	execute(t, db, createCounter, zero, `PRAGMA query_only = on`) // as after an error of the disk

	if err := add(t.Context(), db.Writer()); !storage.IsUnavailable(err) {
		t.Errorf("a file that is only read gives %v", err)
	}

	if _, err := storage.Exec(t.Context(), db.Writer(), `PRAGMA query_only = off`); err != nil {
		t.Fatal(err)
	}

	if err := add(t.Context(), db.Writer()); err != nil {
		t.Errorf("a file that is written again gives %v", err)
	}
}
