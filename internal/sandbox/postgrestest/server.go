package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
	"github.com/environment-broker/environment-broker/storage"
)

// startTimeout is how long a server may take to start.
const startTimeout = 2 * time.Minute

// Server is a PostgreSQL server that was started from the binaries of the machine. It can be stopped and started again, with the
// same data on the same port.
type Server struct {
	dsn        string
	folder     string
	arguments  []string
	attributes *syscall.SysProcAttr
	// owner is the user ID of PostgreSQL's files, -1 if it is the user of this process.
	owner int
	// running is the started process, nil while the server is stopped.
	running *exec.Cmd
}

// Own starts a server for this test alone, with settings such as max_connections=200, and removes it at the end. It needs the
// binaries, even with TEST_POSTGRES_DSN.
func Own(tb testing.TB, settings ...string) *Server {
	tb.Helper()

	server, err := startWithoutSync(settings...)
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() {
		if err := server.Remove(); err != nil {
			tb.Error(err)
		}
	})

	return server
}

// Launch starts a server with the default settings for benchmarks: a commit returns when it is on disk. Remove stops the server.
func Launch() (*Server, error) { return start() }

// Database creates an empty database for the test and drops it at the end.
func (s *Server) Database(tb testing.TB) storage.Config {
	tb.Helper()

	return newDatabase(tb, s.dsn)
}

// ID returns the process ID of the server, the parent of its other processes. Benchmarks measure the CPU time of all of them. The
// server must be running.
func (s *Server) ID() int { return s.running.Process.Pid }

// Stop stops the server: it closes connections and rolls back open transactions. It does nothing if the server is stopped. Clients
// see broken connections first, and refused ones until Start.
func (s *Server) Stop() error {
	if s.running == nil {
		return nil
	}

	stopping := s.running
	s.running = nil

	if err := stopping.Process.Signal(syscall.SIGINT); err != nil { // "fast" shutdown
		return fmt.Errorf("stopping PostgreSQL: %w", err)
	}

	if err := stopping.Wait(); err != nil {
		return fmt.Errorf("waiting for PostgreSQL to stop: %w", err)
	}

	return nil
}

// Start starts a stopped server and waits until it is ready. The port is the same as before; freeport keeps it from other tests
// meanwhile.
func (s *Server) Start() error {
	binary, err := binary("postgres")
	if err != nil {
		return err
	}

	command := exec.Command(binary, s.arguments...)
	command.SysProcAttr, command.Dir = s.attributes, s.folder

	if err := command.Start(); err != nil {
		return fmt.Errorf("starting PostgreSQL: %w", err)
	}

	s.running = command

	return s.waitUntilReady()
}

// startWithoutSync starts a server that does not wait for the disk: its data survives the death of its processes, but not that of
// the machine. Tests that kill processes are therefore valid, and run several times faster.
func startWithoutSync(settings ...string) (*Server, error) {
	return start(append([]string{"fsync=off", "full_page_writes=off"}, settings...)...)
}

// start creates a server in a temporary folder and starts it on a free port. The folder remains if initdb fails, for diagnosis;
// Remove deletes it otherwise.
func start(settings ...string) (*Server, error) {
	initdb, err := binary("initdb")
	if err != nil {
		return nil, err
	}

	attributes, owner, err := unprivileged()
	if err != nil {
		return nil, err
	}

	folder, err := os.MkdirTemp("", "postgres")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for PostgreSQL: %w", err)
	}

	if owner >= 0 {
		if err := os.Chown(folder, owner, -1); err != nil {
			return nil, fmt.Errorf("changing the owner of the folder to PostgreSQL's user: %w", err)
		}
	}

	data := filepath.Join(folder, "data")

	create := exec.Command(initdb, "-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--no-sync")
	create.SysProcAttr, create.Dir = attributes, folder

	if output, err := create.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, output)
	}

	port, err := freeport.Draw(context.Background())
	if err != nil {
		return nil, err
	}

	arguments := []string{"-D", data, "-p", strconv.Itoa(port), "-k", folder, "-c", "listen_addresses=127.0.0.1"}
	for _, setting := range settings {
		arguments = append(arguments, "-c", setting)
	}

	server := &Server{
		dsn:    fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port),
		folder: folder, arguments: arguments, attributes: attributes, owner: owner,
	}

	if err := server.Start(); err != nil {
		return nil, errors.Join(err, server.Remove())
	}

	return server, nil
}

// Remove stops the server and removes its data. The server cannot be started again.
func (s *Server) Remove() error {
	return errors.Join(s.Stop(), os.RemoveAll(s.folder))
}

// waitUntilReady waits until the server accepts connections, at most startTimeout. The error contains the last refusal, such as that
// the database system is starting up.
func (s *Server) waitUntilReady() error {
	const pause = 50 * time.Millisecond

	var refusal error

	err := wait.PollUntilContextTimeout(context.Background(), pause, startTimeout, true, func(ctx context.Context) (bool, error) {
		refusal = administer(ctx, s.dsn, "")

		return refusal == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for PostgreSQL: %w", errors.Join(err, refusal))
	}

	return nil
}

// StartStandby restarts the server as a standby, which is read-only until Promote. It has no primary to follow: tests need
// only the errors of a read-only server.
func (s *Server) StartStandby() error {
	if err := s.Stop(); err != nil {
		return err
	}

	if err := os.WriteFile(filepath.Join(s.folder, "data", "standby.signal"), nil, 0o600); err != nil {
		return fmt.Errorf("making PostgreSQL a standby: %w", err)
	}

	if s.owner >= 0 {
		if err := os.Chown(filepath.Join(s.folder, "data", "standby.signal"), s.owner, -1); err != nil {
			return fmt.Errorf("changing the owner of a file to PostgreSQL's user: %w", err)
		}
	}

	return s.Start()
}

// Promote makes a standby the primary and waits until it accepts writes.
func (s *Server) Promote(ctx context.Context) error {
	if err := administer(ctx, s.dsn, `SELECT pg_promote()`); err != nil {
		return fmt.Errorf("promoting PostgreSQL: %w", err)
	}

	return nil
}

// binary finds a program of PostgreSQL on PATH or, in its newest version, in the folder of Debian.
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

// unprivileged returns the attributes and the user for PostgreSQL, which does not run as root; -1 for our own user.
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

	var ids [2]int

	for i, text := range []string{account.Uid, account.Gid} {
		if ids[i], err = strconv.Atoi(text); err != nil {
			return nil, 0, fmt.Errorf("reading the IDs of user %s: %w", account.Username, err)
		}
	}

	attributes.Credential = &syscall.Credential{Uid: uint32(ids[0]), Gid: uint32(ids[1])} //nolint:gosec // the system's own IDs

	return attributes, ids[0], nil
}
