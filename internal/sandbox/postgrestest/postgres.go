// Package postgrestest provides PostgreSQL databases for tests. It uses the server in TEST_POSTGRES_DSN, or starts a temporary
// server with the installed PostgreSQL binaries. Tests never skip: if PostgreSQL is missing, they fail with instructions. Own
// starts a server for one test, which can stop it, exhaust its connections or make it a standby. Through puts a proxy between a
// test and its database to interrupt connections.
//
// A package that calls Database must call Main in its TestMain. Each test has its own database, so tests can run in parallel,
// even with other packages on the same server. A server that this package starts is used by one test binary only and stops with
// it. Add new server failures as methods of Server, and new network failures as methods of Proxy.
package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq" // also registers the driver "postgres"

	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	dsnVariable = "TEST_POSTGRES_DSN"
	missing     = "PostgreSQL is not available: install it (Debian: apt-get install postgresql), or set " + dsnVariable +
		" to postgres://user:password@host:port/database?sslmode=disable of a server where the user can create databases"
)

// shared is the server of this test binary. Starting a server takes seconds, so all tests share one, each with its own database.
var shared struct {
	once sync.Once
	dsn  string
	err  error
	// own is the server that this package started, or nil if there is none.
	own *Server
}

// Runner runs the tests of a package. *testing.M implements it.
type Runner interface{ Run() int }

// Main runs the tests of a package and then stops the server, if one was started. Call it from TestMain in every package that
// uses Database: Go has no other hook at the end of a test binary, and the server would otherwise keep running.
func Main(m Runner) {
	code := m.Run()

	if shared.own != nil {
		if err := shared.own.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}

	os.Exit(code)
}

// Database creates an empty database for the test and drops it when the test ends. The first call in a test binary starts a
// server, unless TEST_POSTGRES_DSN is set. If PostgreSQL is not available, the test fails.
func Database(tb testing.TB) storage.Config {
	tb.Helper()

	shared.once.Do(func() {
		if shared.dsn = os.Getenv(dsnVariable); shared.dsn != "" {
			return
		}

		// Autovacuum also collects statistics, which would make tests of query plans nondeterministic.
		if shared.own, shared.err = startWithoutSync("autovacuum=off"); shared.err == nil {
			shared.dsn = shared.own.dsn
		}
	})

	if shared.err != nil {
		tb.Fatal(shared.err)
	}

	return newDatabase(tb, shared.dsn, "template1")
}

// DSN returns the data source name of a database, for lib/pq. The database need not exist.
func (s *Server) DSN(name string) (string, error) {
	address, err := url.Parse(s.dsn)
	if err != nil {
		return "", fmt.Errorf("reading the address of the server: %w", err)
	}

	address.Path = "/" + name

	return address.String(), nil
}

// newDatabase creates a copy of a database with a random name, so that tests on a shared server do not interfere with each other. It drops
// the database when the test ends, even if connections to it are open.
func newDatabase(tb testing.TB, dsn, original string) storage.Config {
	tb.Helper()

	name := "test_" + uuid.NewString()[:8]
	if err := administer(tb.Context(), dsn, `CREATE DATABASE `+name+` TEMPLATE `+original); err != nil {
		tb.Fatalf("creating a database: %v", err)
	}

	tb.Cleanup(func() { // the test's context has already ended
		if err := administer(context.Background(), dsn, `DROP DATABASE `+name+` WITH (FORCE)`); err != nil {
			tb.Errorf("dropping the database: %v", err)
		}
	})

	config, err := configOf(dsn, name)
	if err != nil {
		tb.Fatal(err)
	}

	return config
}

// configOf returns the configuration for a database of the server in dsn.
func configOf(dsn, name string) (storage.Config, error) {
	server, err := pq.NewConfig(dsn)
	if err != nil {
		return storage.Config{}, fmt.Errorf("reading %s: %w", dsnVariable, err)
	}

	return storage.Config{
		Driver:   storage.DriverPostgres,
		User:     server.User,
		Password: secret.String(server.Password),
		Host:     server.Host,
		Port:     strconv.Itoa(int(server.Port)),
		SSLMode:  string(server.SSLMode),
		Name:     name,
	}, nil
}

// administer executes a statement on a new connection. It does not use the connection pool of the code under test, because a test
// may exhaust this pool.
func administer(ctx context.Context, dsn, statement string) (err error) {
	admin, err := sqlx.Open("postgres", dsn)
	if err != nil {
		return fmt.Errorf("reading %s: %w", dsnVariable, err)
	}

	defer func() { err = errors.Join(err, admin.Close()) }()

	_, err = admin.ExecContext(ctx, statement)

	return err
}
