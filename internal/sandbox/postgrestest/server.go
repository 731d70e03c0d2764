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

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
	"github.com/environment-broker/environment-broker/storage"
)

// startTimeout is how long a server may take to start.
const startTimeout = 2 * time.Minute

// Server is a PostgreSQL server that was started from installed binaries. It can be stopped and started again, with the same data
// and the same port.
type Server struct {
	dsn    string
	folder string
	// settings are the PostgreSQL settings that differ from the defaults. arguments are the complete command line.
	settings   []string
	arguments  []string
	attributes *syscall.SysProcAttr
	// owner is the ID of the user that owns PostgreSQL's files, or -1 if this is the current user.
	owner int
	// inMemory means that MemoryFolder creates the folder for the data, which then does not survive a crash of the machine.
	inMemory bool
	// running is the server process, or nil while the server is stopped.
	running *exec.Cmd
}

// Own starts a server for this test only, with settings such as max_connections=200, and removes it when the test ends. It needs
// the PostgreSQL binaries even if TEST_POSTGRES_DSN is set.
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

// Launch starts a server for benchmarks. It has PostgreSQL's default settings except for the given ones, each in the form
// name=value. A commit returns only after it is on disk. The caller must call Remove.
func Launch(settings ...string) (*Server, error) { return start(false, settings...) }

// Database creates an empty database for the test and drops it when the test ends.
func (s *Server) Database(tb testing.TB) storage.Config {
	tb.Helper()

	return newDatabase(tb, s.dsn, emptyTemplate)
}

// Copy creates a copy of a database to which nobody is connected, and drops the copy when the test ends.
func (s *Server) Copy(tb testing.TB, original string) storage.Config {
	tb.Helper()

	return newDatabase(tb, s.dsn, original)
}

// Config returns the configuration for connecting to the named database on the server.
func (s *Server) Config(tb testing.TB, name string) storage.Config {
	tb.Helper()

	config, err := configOf(s.dsn, name)
	if err != nil {
		tb.Fatal(err)
	}

	return config
}

// ID returns the process ID of the running server, which is the parent of all PostgreSQL processes. Benchmarks use it to measure
// the CPU time of all these processes.
func (s *Server) ID() int { return s.running.Process.Pid }

// Stop closes all connections, rolls back open transactions and stops the server. It does nothing if the server is already
// stopped. Clients get errors for their connections, and new connections are refused until Start is called.
func (s *Server) Stop() error {
	if s.running == nil {
		return nil
	}

	stopping := s.running
	s.running = nil

	if err := stopping.Process.Signal(syscall.SIGINT); err != nil { // "fast" shutdown
		return fmt.Errorf("stopping PostgreSQL: %w", err)
	}

	return failure.While(stopping.Wait(), "waiting for PostgreSQL to stop")
}

// Start starts a stopped server and waits until it is ready. The port stays the same; freeport reserves it while the server is
// stopped.
func (s *Server) Start() error {
	binary, err := Binary("postgres")
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

// startWithoutSync starts a server that does not wait for the disk. MemoryFolder creates the folder for its data. The data
// survives the death of the server's processes, but not a crash of the machine. Tests that kill processes therefore remain valid,
// and all tests run several times faster. The limits on the write-ahead log keep the folder small.
func startWithoutSync(settings ...string) (*Server, error) {
	return start(true, append([]string{"fsync=off", "full_page_writes=off", "min_wal_size=32MB", "max_wal_size=128MB"}, settings...)...)
}

// start creates a server in a temporary folder and starts it on a free port. If initdb fails, the folder remains for diagnosis;
// otherwise Remove deletes it.
func start(inMemory bool, settings ...string) (*Server, error) {
	initdb, err := Binary("initdb")
	if err != nil {
		return nil, err
	}

	attributes, owner, err := Unprivileged()
	if err != nil {
		return nil, err
	}

	folder, err := makeFolder(inMemory, owner)
	if err != nil {
		return nil, err
	}

	data := filepath.Join(folder, "data")

	create := exec.Command(initdb, "-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--no-sync")
	create.SysProcAttr, create.Dir = attributes, folder

	if output, err := create.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, output)
	}

	server := &Server{folder: folder, settings: settings, attributes: attributes, owner: owner, inMemory: inMemory}

	err = server.listen()
	if err == nil {
		err = server.Start()
	}

	if err != nil {
		return nil, errors.Join(err, server.Remove())
	}

	return server, nil
}

// makeFolder creates a temporary folder for the user that runs PostgreSQL.
func makeFolder(inMemory bool, owner int) (string, error) {
	create := MemoryFolder
	if !inMemory {
		create = func(pattern string) (string, error) { return os.MkdirTemp("", pattern) }
	}

	folder, err := create("postgres")
	if err != nil {
		return "", fmt.Errorf("creating a folder for PostgreSQL: %w", err)
	}

	if owner < 0 {
		return folder, nil
	}

	if err := os.Chown(folder, owner, -1); err != nil {
		return "", fmt.Errorf("changing the owner of the folder to PostgreSQL's user: %w", err)
	}

	return folder, nil
}

// listen chooses a free port, which the server keeps until it is removed, and sets the command line. It does not start the
// server.
func (s *Server) listen() error {
	port, err := freeport.Draw(context.Background())
	if err != nil {
		return err
	}

	s.dsn = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
	s.arguments = []string{"-D", filepath.Join(s.folder, "data"), "-p", strconv.Itoa(port), "-k", s.folder, "-c", "listen_addresses=127.0.0.1"}

	for _, setting := range s.settings {
		s.arguments = append(s.arguments, "-c", setting)
	}

	return nil
}

// Remove stops the server and deletes its data. The server cannot be started again.
func (s *Server) Remove() error {
	return errors.Join(s.Stop(), os.RemoveAll(s.folder))
}

// waitUntilReady waits up to startTimeout until the server accepts connections. Its error contains the last connection error, for
// example that the database system is starting up.
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

// StartStandby restarts the server as a standby, which is read-only until Promote is called. It has no primary: tests need only
// the errors of a read-only server.
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
	return failure.While(administer(ctx, s.dsn, `SELECT pg_promote()`), "promoting PostgreSQL")
}

// Clone starts another server with a copy of the data, and removes it when the test ends. If the clone is promoted, both servers
// are primaries, as after a failover that the old primary has not noticed.
func (s *Server) Clone(tb testing.TB) *Server {
	tb.Helper()

	clone, err := s.clone()
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() {
		if err := clone.Remove(); err != nil {
			tb.Error(err)
		}
	})

	return clone
}

// clone starts another server with a copy of the data. It stops s while it copies.
func (s *Server) clone() (*Server, error) {
	if err := s.Stop(); err != nil {
		return nil, err
	}

	folder, err := makeFolder(s.inMemory, s.owner)
	if err != nil {
		return nil, err
	}

	clone := &Server{folder: folder, settings: s.settings, attributes: s.attributes, owner: s.owner, inMemory: s.inMemory}

	command := exec.Command("cp", "-a", filepath.Join(s.folder, "data"), folder)
	command.SysProcAttr, command.Dir = s.attributes, folder

	if output, err := command.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("copying the data of PostgreSQL: %w: %s", err, output), clone.Remove())
	}

	if err := errors.Join(s.Start(), clone.listen()); err != nil {
		return nil, errors.Join(err, clone.Remove())
	}

	return clone, clone.StartStandby()
}

// Binary finds a PostgreSQL program on PATH or in Debian's folder of the newest installed version.
func Binary(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}

	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil || len(found) == 0 {
		return "", errors.New(missing)
	}

	return found[len(found)-1], nil
}

// Unprivileged returns the process attributes and the user ID for PostgreSQL, which refuses to run as root. The ID is -1 if the
// current user can run it.
func Unprivileged() (*syscall.SysProcAttr, int, error) {
	attributes := &syscall.SysProcAttr{}
	if os.Geteuid() != 0 {
		return attributes, -1, nil
	}

	account, err := user.Lookup("postgres")
	if err != nil {
		if account, err = user.Lookup("nobody"); err != nil {
			return nil, 0, fmt.Errorf("finding a user that can run PostgreSQL: %w", err)
		}
	}

	var ids [2]int

	for i, text := range []string{account.Uid, account.Gid} {
		if ids[i], err = strconv.Atoi(text); err != nil {
			return nil, 0, fmt.Errorf("reading the IDs of user %s: %w", account.Username, err)
		}
	}

	attributes.Credential = &syscall.Credential{Uid: uint32(ids[0]), Gid: uint32(ids[1])} //nolint:gosec // IDs from the user database

	return attributes, ids[0], nil
}
