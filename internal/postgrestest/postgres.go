// Package postgrestest gives tests a real PostgreSQL: the one that TEST_POSTGRES_DSN names, or a server of their own, started
// from the binaries on the machine in a temporary folder. It never skips: without PostgreSQL the tests fail and say what to do.
package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // driver "postgres"

	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	dsnVariable  = "TEST_POSTGRES_DSN"
	startTimeout = 30 * time.Second
	missing      = "no PostgreSQL for the tests: install it (Debian: apt-get install postgresql), or set " + dsnVariable +
		" to postgres://user:password@host:port/database?sslmode=disable of a server where databases may be created"
)

// server is the one server of a test binary.
type server struct {
	once   sync.Once
	dsn    string
	err    error
	folder string
	stop   func()
}

// Runner runs the tests of a package: a *testing.M, or something around it.
type Runner interface{ Run() int }

// Main runs the tests of a package and stops the server that they may have started.
func Main(m Runner) {
	code := m.Run()

	if shared.stop != nil {
		shared.stop()
	}

	os.Exit(code)
}

var shared server

// Database makes an empty database for the test, and drops it at the end.
func Database(tb testing.TB) storage.Config {
	tb.Helper()

	shared.once.Do(shared.start)

	if shared.err != nil {
		tb.Fatal(shared.err)
	}

	name := "test_" + uuid.NewString()[:8]

	config, err := shared.create(tb.Context(), name, standardTemplate)
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() { // the test's context has ended
		if err := shared.drop(context.Background(), name); err != nil {
			tb.Error(err)
		}
	})

	return config
}

// withDatabase names another database in the connection string.
func withDatabase(dsn, name string) (string, error) {
	address, err := url.Parse(dsn)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", dsnVariable, err)
	}

	address.Path = "/" + name

	return address.String(), nil
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

// start finds or starts the server.
func (s *server) start() {
	if s.dsn = os.Getenv(dsnVariable); s.dsn != "" {
		return
	}

	s.err = s.run()
}

func (s *server) run() error {
	initdb, err := binary("initdb")
	if err != nil {
		return err
	}

	postgres, err := binary("postgres")
	if err != nil {
		return err
	}

	attributes, owner, err := unprivileged()
	if err != nil {
		return err
	}

	if s.folder, err = os.MkdirTemp("", "postgres"); err != nil {
		return fmt.Errorf("making a folder for PostgreSQL: %w", err)
	}

	if owner >= 0 {
		if err := os.Chown(s.folder, owner, -1); err != nil {
			return fmt.Errorf("handing the folder to PostgreSQL's user: %w", err)
		}
	}

	data := filepath.Join(s.folder, "data")

	create := exec.Command(initdb, "-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--no-sync")
	create.SysProcAttr, create.Dir = attributes, s.folder

	if output, err := create.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, output)
	}

	port, err := freePort()
	if err != nil {
		return err
	}

	run := exec.Command(postgres, "-D", data, "-p", strconv.Itoa(port), "-k", s.folder, "-c", "listen_addresses=127.0.0.1")
	run.SysProcAttr, run.Dir = attributes, s.folder

	if err := run.Start(); err != nil {
		return fmt.Errorf("starting PostgreSQL: %w", err)
	}

	s.stop = func() {
		_ = run.Process.Signal(syscall.SIGINT) // "fast" shutdown
		_ = run.Wait()
		_ = os.RemoveAll(s.folder)
	}
	s.dsn = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)

	return s.waitUntilReady()
}

func (s *server) waitUntilReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()

	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()

	for {
		db, err := sqlx.ConnectContext(ctx, "postgres", s.dsn)
		if err == nil {
			return db.Close()
		}

		if db != nil {
			_ = db.Close() // connecting failed, its goroutine is there all the same
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for PostgreSQL: %w", err)
		case <-tick.C:
		}
	}
}

// binary finds a program of PostgreSQL on PATH or where Debian puts the newest version.
func binary(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}

	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil || len(found) == 0 {
		return "", errors.New(missing)
	}

	return found[len(found)-1], nil
}

// unprivileged returns how to start PostgreSQL, which refuses to run as root, and the user that it then runs as.
func unprivileged() (*syscall.SysProcAttr, int, error) {
	attributes := &syscall.SysProcAttr{}
	if os.Geteuid() != 0 {
		return attributes, -1, nil
	}

	account, err := user.Lookup("postgres")
	if err != nil {
		if account, err = user.Lookup("nobody"); err != nil {
			return nil, 0, fmt.Errorf("finding a user for PostgreSQL: %w", err)
		}
	}

	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the id of user %s: %w", account.Username, err)
	}

	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the group of user %s: %w", account.Username, err)
	}

	attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}

	return attributes, int(uid), nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}

	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("finding a free port: not a TCP address")
	}

	if err := listener.Close(); err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}

	return address.Port, nil
}
