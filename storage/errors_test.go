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
		"nobody listens":               {"the server may start", refused, true},
		"no response in time":          {"the server may be busy", context.DeadlineExceeded, true},
		"connection broke":             {"the next connection may work", driver.ErrBadConn, true},
		"connection closed":            {"the next connection may work", sql.ErrConnDone, true},
		"connection failure":           {"class 08 concerns connections", &pq.Error{Code: "08006"}, true},
		"too many connections":         {"other clients return theirs", &pq.Error{Code: "53300"}, true},
		"hung up":                      {"a proxy closes connections while its server is unreachable", io.EOF, true},
		"disk full":                    {"an operator frees space", &pq.Error{Code: "53100"}, true},
		"server stops":                 {"a standby is promoted", &pq.Error{Code: "57P01"}, true},
		"server starts":                {"the server is starting", &pq.Error{Code: "57P03"}, true},
		"deadlock":                     {"the other transaction continues, and a retry may succeed", &pq.Error{Code: "40P01"}, true},
		"not serialized":               {"PostgreSQL recommends a retry", &pq.Error{Code: "40001"}, true},
		"read only":                    {"another server was promoted and will be found", &pq.Error{Code: "25006"}, true},
		"statement too slow":           {"a server limit was exceeded, and a retry may be faster", &pq.Error{Code: "57014"}, true},
		"lock is held":                 {"the lock may be released soon", &pq.Error{Code: "55P03"}, true},
		"canceled by a caller":         {"the caller does not wait for the response", errors.Join(context.Canceled, &pq.Error{Code: "57014"}), false},
		"duplicate":                    {"a retry fails, too", &pq.Error{Code: "23505"}, false},
		"no such table":                {"a retry fails, too", &pq.Error{Code: "42P01"}, false},
		"wrong password":               {"an operator must act", &pq.Error{Code: "28P01"}, false},
		"caller gave up":               {"the caller does not wait for the response", context.Canceled, false},
		"dial with a canceled context": {"the caller does not wait for the response", &net.OpError{Op: "dial", Net: "tcp", Err: context.Canceled}, false},
		"not found":                    {"the database has responded", storage.ErrNotFound, false},
		"something else":               {"unknown errors are not retried", errors.New("connection refused"), false},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := storage.Cause(t.Context(), c.err)
			if got := storage.IsUnavailable(err); got != c.want {
				t.Errorf("%s: got %t for %v", c.reason, got, c.err)
			}

			if storage.IsUnavailable(fmt.Errorf("reading: %w", err)) != c.want {
				t.Errorf("%s: wrapping changes the result", c.reason)
			}
		})
	}

	for _, other := range []error{nil, refused, context.DeadlineExceeded, io.EOF, errors.New("connection refused")} {
		if storage.IsUnavailable(other) {
			t.Errorf("%v does not come from the database", other)
		}
	}
}

func TestPostgresTerminationIsUnavailable(t *testing.T) {
	db := storagetest.Open(t, postgrestest.Database(t))

	err := db.InTx(t.Context(), func(tx storage.Tx) error {
		_, err := storage.Exec(t.Context(), tx, `SELECT pg_terminate_backend(pg_backend_pid())`)

		return err
	})
	if !storage.IsUnavailable(err) {
		t.Errorf("a server that closes the connection returns %v", err)
	}

	if err := db.Ping(t.Context()); err != nil {
		t.Errorf("the next connection returns %v", err)
	}
}

func TestBusySQLiteIsUnavailable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	db := storagetest.Open(t, storage.Config{Driver: storage.DriverSQLite, Path: path})

	// Unlike the connections of Open, this one has no busy timeout.
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
		t.Errorf("a file that another process writes returns %v", err)
	}
}

func TestReadOnlySQLiteIsUnavailable(t *testing.T) {
	db := storagetest.SQLite(t)
	execute(t, db, createCounter, zero, `PRAGMA query_only = on`) // SQLite is read-only after some disk errors

	if err := add(t.Context(), db.Writer()); !storage.IsUnavailable(err) {
		t.Errorf("a read-only file returns %v", err)
	}

	if _, err := storage.Exec(t.Context(), db.Writer(), `PRAGMA query_only = off`); err != nil {
		t.Fatal(err)
	}

	if err := add(t.Context(), db.Writer()); err != nil {
		t.Errorf("a writable file returns %v", err)
	}
}

func TestIsDeadlock(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"deadlock":       {"the other transaction continues", fmt.Errorf("storing: %w", &pq.Error{Code: "40P01"}), true},
		"not serialized": {"PostgreSQL recommends a retry", &pq.Error{Code: "40001"}, true},
		"duplicate":      {"a retry fails again", &pq.Error{Code: "23505"}, false},
		"full":           {"the disk stays full", &pq.Error{Code: "53100"}, false},
		"other":          {"the error is not PostgreSQL's", io.EOF, false},
	} {
		if got := storage.IsDeadlock(c.err); got != c.want {
			t.Errorf("%s: %s: got %t", name, c.reason, got)
		}
	}
}

// TestDuplicateOfAColumn checks that IsDuplicateOf recognizes the column with the duplicate on both databases.
func TestDuplicateOfAColumn(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		insert := func(statement string) error {
			_, err := storage.Exec(t.Context(), db.Writer(), statement)

			return err
		}

		for _, statement := range []string{`CREATE TABLE cars (id TEXT UNIQUE, plate TEXT UNIQUE)`, `INSERT INTO cars VALUES ('a', 'x')`} {
			if err := insert(statement); err != nil {
				t.Fatal(err)
			}
		}

		for values, want := range map[string]bool{`('b', 'x')`: true, `('a', 'y')`: false} {
			err := insert(`INSERT INTO cars VALUES ` + values)
			if got := storage.IsDuplicateOf(err, "cars", "plate"); got != want || !storage.IsDuplicate(err) {
				t.Errorf("%s: got %t for %v, want %t", values, got, err, want)
			}
		}
	})
}
