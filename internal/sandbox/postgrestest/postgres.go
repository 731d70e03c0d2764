// Package postgrestest provides PostgreSQL to tests: databases on the server that TEST_POSTGRES_DSN names, or on one that it
// starts from the binaries of the machine in a temporary folder. Tests never skip: without PostgreSQL they fail with the remedy.
// Own starts a server for one test, which can stop it, exhaust its connections or make it a standby; Through breaks the
// connections to a database.
//
// A package that uses Database calls Main in its TestMain. Each test has its own database, so tests may run in parallel, also with
// other packages on one server. A server that the package starts belongs to the test binary and is stopped with it. Another way to
// disturb a server is a method of Server, another way to disturb the network a method of Proxy.
package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq" // it also registers the driver "postgres"

	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	dsnVariable = "TEST_POSTGRES_DSN"
	missing     = "no PostgreSQL for the tests: install it (Debian: apt-get install postgresql), or set " + dsnVariable +
		" to postgres://user:password@host:port/database?sslmode=disable of a server where databases may be created"
)

// shared is the server of a test binary. Starting one takes seconds, so all tests of a package share it, each with its own
// database.
var shared struct {
	once sync.Once
	dsn  string
	err  error
	// own is the server that was started for the tests, nil if there is none.
	own *Server
}

// Runner runs the tests of a package: a *testing.M or a wrapper.
type Runner interface{ Run() int }

// Main runs the tests of a package and stops the server that was started for them. Call it from TestMain in every package that uses
// Database: Go has no hook for the end of a test binary, and the server would stay.
func Main(m Runner) {
	code := m.Run()

	if shared.own != nil {
		if err := shared.own.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}

	os.Exit(code)
}

// Database creates an empty database for the test and drops it at the end. The first call in a test binary starts a server,
// unless TEST_POSTGRES_DSN names one. The test fails if there is no PostgreSQL.
func Database(tb testing.TB) storage.Config {
	tb.Helper()

	shared.once.Do(func() {
		if shared.dsn = os.Getenv(dsnVariable); shared.dsn != "" {
			return
		}

		// Without automatic statistics, tests of query plans are deterministic.
		if shared.own, shared.err = startWithoutSync("autovacuum=off"); shared.err == nil {
			shared.dsn = shared.own.dsn
		}
	})

	if shared.err != nil {
		tb.Fatal(shared.err)
	}

	return newDatabase(tb, shared.dsn)
}

// DSN returns the data source name of a database, for lib/pq. It does not check that the database exists.
func (s *Server) DSN(name string) (string, error) {
	address, err := url.Parse(s.dsn)
	if err != nil {
		return "", fmt.Errorf("reading the address of the server: %w", err)
	}

	address.Path = "/" + name

	return address.String(), nil
}

// newDatabase creates a database with a random name, so that tests on a shared server do not disturb each other. It drops the
// database at the end of the test, even if connections to it are open.
func newDatabase(tb testing.TB, dsn string) storage.Config {
	tb.Helper()

	server, err := pq.NewConfig(dsn)
	if err != nil {
		tb.Fatalf("reading %s: %v", dsnVariable, err)
	}

	name := "test_" + uuid.NewString()[:8]
	if err := administer(tb.Context(), dsn, `CREATE DATABASE `+name); err != nil {
		tb.Fatalf("creating a database: %v", err)
	}

	tb.Cleanup(func() { // the context of the test has ended
		if err := administer(context.Background(), dsn, `DROP DATABASE `+name+` WITH (FORCE)`); err != nil {
			tb.Errorf("dropping the database: %v", err)
		}
	})

	return storage.Config{
		Driver:   storage.DriverPostgres,
		User:     server.User,
		Password: secret.String(server.Password),
		Host:     server.Host,
		Port:     int(server.Port),
		SSLMode:  string(server.SSLMode),
		Name:     name,
	}
}

// administer executes a statement on a new connection to the database of the DSN. It uses no pool of the code under test, which a
// test may exhaust.
func administer(ctx context.Context, dsn, statement string) (err error) {
	admin, err := sqlx.Open("postgres", dsn)
	if err != nil {
		return fmt.Errorf("reading %s: %w", dsnVariable, err)
	}

	defer func() { err = errors.Join(err, admin.Close()) }()

	_, err = admin.ExecContext(ctx, statement)

	return err
}
