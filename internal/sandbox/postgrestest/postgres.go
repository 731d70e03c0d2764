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
	"go.uber.org/goleak"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	dsnVariable = "TEST_POSTGRES_DSN"
	missing     = "PostgreSQL is not available: install it (Debian: apt-get install postgresql), or set " + dsnVariable +
		" to postgres://user:password@host:port/database?sslmode=disable of a server on which the user can create databases"
)

// shared is the server of this test binary. Starting a server takes seconds, so all tests share one, each with its own database.
var shared struct {
	once sync.Once
	// stops is true in Main, which stops the server.
	stops bool
	dsn   string
	err   error
	// own is the server that this package started, or nil if there is none.
	own *Server
}

// template is the database that Copy copies. Its name is empty until the first call of Copy.
var template struct {
	once sync.Once
	name string
	err  error
}

// Runner runs the tests of a package. *testing.M implements it.
type Runner interface{ Run() int }

// Main runs the tests of a package and then stops the server, if one was started. Call it from TestMain in every package that
// uses Database: Go has no other hook at the end of a test binary, and the server would otherwise keep running.
func Main(m Runner) {
	shared.stops = true
	code := m.Run()

	var err error

	switch {
	case shared.own != nil:
		err = shared.own.Remove()
	case template.name != "":
		err = drop(shared.dsn, template.name)
	}

	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}

	os.Exit(code)
}

// MainWithoutLeaks is like Main, but fails if the tests have leaked goroutines.
func MainWithoutLeaks(m Runner) { Main(leakChecked{m}) }

type leakChecked struct{ Runner }

func (l leakChecked) Run() int {
	code := l.Runner.Run()

	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	return code
}

// Database creates an empty database for the test and drops it when the test ends. The first call in a test binary starts a
// server, unless TEST_POSTGRES_DSN is set. If PostgreSQL is not available, the test fails.
func Database(tb testing.TB) storage.Config {
	tb.Helper()

	return newDatabase(tb, sharedServer(tb), emptyTemplate)
}

// Copy is like Database, but the new database is a copy of a template database. The first call in a test binary creates the
// template: it calls fill, which creates the tables and rows and must close its connections. Later calls ignore fill. A copy
// takes about as long as an empty database to create, so each test saves the time for the migrations.
func Copy(tb testing.TB, fill func(config storage.Config) error) storage.Config {
	tb.Helper()

	dsn := sharedServer(tb)

	template.once.Do(func() { template.name, template.err = newTemplate(tb.Context(), dsn, fill) })

	if template.err != nil {
		tb.Fatalf("creating the template database: %v", template.err)
	}

	return newDatabase(tb, dsn, template.name)
}

// newTemplate creates and fills a database, and returns its name.
func newTemplate(ctx context.Context, dsn string, fill func(config storage.Config) error) (string, error) {
	name := randomName()

	config, err := configOf(dsn, name)
	if err != nil {
		return "", err
	}

	if err := create(ctx, dsn, name, emptyTemplate); err != nil {
		return "", err
	}

	if err := fill(config); err != nil {
		return "", errors.Join(err, drop(dsn, name))
	}

	return name, nil
}

// sharedServer returns the data source name of the test binary's server. The first call starts it, unless TEST_POSTGRES_DSN is
// set.
func sharedServer(tb testing.TB) string {
	tb.Helper()

	if !shared.stops {
		tb.Fatal("no TestMain stops PostgreSQL at the end: call postgrestest.Main in the TestMain of this package")
	}

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

	return shared.dsn
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

// emptyTemplate is PostgreSQL's default template. A copy of it is an empty database.
const emptyTemplate = "template1"

// newDatabase copies a template database to a database with a random name, so that tests on a shared server do not interfere with
// each other. It drops the new database when the test ends, even if connections to it are open.
func newDatabase(tb testing.TB, dsn, template string) storage.Config {
	tb.Helper()

	name := randomName()
	if err := create(tb.Context(), dsn, name, template); err != nil {
		tb.Fatalf("creating a database: %v", err)
	}

	tb.Cleanup(func() {
		if err := drop(dsn, name); err != nil {
			tb.Error(err)
		}
	})

	config, err := configOf(dsn, name)
	if err != nil {
		tb.Fatal(err)
	}

	return config
}

// create copies a template database. PostgreSQL's default strategy writes every page of the copy to the log, and takes three times as
// long.
func create(ctx context.Context, dsn, name, template string) error {
	return administer(ctx, dsn, `CREATE DATABASE `+name+` TEMPLATE `+template+` STRATEGY FILE_COPY`)
}

func randomName() string { return "test_" + uuid.NewString()[:8] }

// drop removes a database, even if connections to it are open. It does not use the test's context, because it runs after that
// context has ended.
func drop(dsn, name string) error {
	return failure.While(administer(context.Background(), dsn, `DROP DATABASE `+name+` WITH (FORCE)`), "dropping the database %s", name)
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
