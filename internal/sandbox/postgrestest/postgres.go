// Package postgrestest gives tests a real PostgreSQL: the one that TEST_POSTGRES_DSN names, or a server of their own, started
// from the binaries on the machine in a temporary folder. It never skips: without PostgreSQL the tests fail and say what to do.
package postgrestest

import (
	"fmt"
	"net/url"
	"os"
	"strconv"
	"sync"
	"testing"

	_ "github.com/lib/pq" // driver "postgres"

	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	dsnVariable = "TEST_POSTGRES_DSN"
	missing     = "no PostgreSQL for the tests: install it (Debian: apt-get install postgresql), or set " + dsnVariable +
		" to postgres://user:password@host:port/database?sslmode=disable of a server where databases may be created"
)

// shared is the one server of a test binary.
var shared struct {
	once sync.Once
	dsn  string
	err  error
	// own is the server that the tests have started, or nil.
	own *Server
}

// Runner runs the tests of a package: a *testing.M, or something around it.
type Runner interface{ Run() int }

// Main runs the tests of a package and stops the server that they may have started.
func Main(m Runner) {
	code := m.Run()

	if shared.own != nil {
		if err := shared.own.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}

	os.Exit(code)
}

// Database makes an empty database for the test, and drops it at the end.
func Database(tb testing.TB) storage.Config {
	tb.Helper()

	shared.once.Do(func() {
		if shared.dsn = os.Getenv(dsnVariable); shared.dsn != "" {
			return
		}

		// Statistics are gathered where a test says so: tests that read plans would have other ones by chance.
		if shared.own, shared.err = startForgetful("autovacuum=off"); shared.err == nil {
			shared.dsn = shared.own.dsn
		}
	})

	if shared.err != nil {
		tb.Fatal(shared.err)
	}

	return newDatabase(tb, shared.dsn)
}

func parse(dsn string) (storage.Config, error) {
	address, err := url.Parse(dsn)
	if err != nil {
		return storage.Config{}, fmt.Errorf("reading %s: %w", dsnVariable, err)
	}

	port := 5432
	if text := address.Port(); text != "" {
		if port, err = strconv.Atoi(text); err != nil {
			return storage.Config{}, fmt.Errorf("reading the port of %s: %w", dsnVariable, err)
		}
	}

	password, _ := address.User.Password()

	return storage.Config{
		Driver:   storage.DriverPostgres,
		User:     address.User.Username(),
		Password: secret.String(password),
		Host:     address.Hostname(),
		Port:     port,
		SSLMode:  address.Query().Get("sslmode"),
	}, nil
}
