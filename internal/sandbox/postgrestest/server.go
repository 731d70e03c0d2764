package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
	"github.com/environment-broker/environment-broker/storage"
)

// startTimeout is how long a server may take until it answers.
const startTimeout = 2 * time.Minute

// Server is a PostgreSQL that was started from the binaries on the machine. It can be stopped and started again, on the same data and
// the same port.
type Server struct {
	dsn        string
	folder     string
	arguments  []string
	attributes *syscall.SysProcAttr
	owner      int // of its files, or -1 when it runs as ourselves
	running    *exec.Cmd
}

// Own starts a server for this test alone, with settings of PostgreSQL such as max_connections=200, and removes it at the end. It needs
// the binaries: a server that others use cannot be stopped.
func Own(tb testing.TB, settings ...string) *Server {
	tb.Helper()

	server, err := startForgetful(settings...)
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

// Launch starts a server for a program that is not a test, with PostgreSQL's own settings: a commit is on disk. Remove ends it.
func Launch() (*Server, error) { return start() }

// Database makes an empty database for the test.
func (s *Server) Database(tb testing.TB) storage.Config {
	tb.Helper()

	return newDatabase(tb, s.dsn)
}

// ID is that of the server's first process, whose children the others are.
func (s *Server) ID() int { return s.running.Process.Pid }

// Stop ends the server: connections are cut, and transactions under way are rolled back.
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
		return fmt.Errorf("PostgreSQL did not stop as it was told to: %w", err)
	}

	return nil
}

// Start starts a server that was stopped, and waits until it answers.
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

// startForgetful makes a server that does not wait for the disk: what it holds survives the death of its processes, but not that of the
// machine, after which nobody asks a test.
func startForgetful(settings ...string) (*Server, error) {
	return start(append([]string{"fsync=off", "full_page_writes=off"}, settings...)...)
}

// start makes a server in a temporary folder.
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
		return nil, fmt.Errorf("making a folder for PostgreSQL: %w", err)
	}

	if owner >= 0 {
		if err := os.Chown(folder, owner, -1); err != nil {
			return nil, fmt.Errorf("handing the folder to PostgreSQL's user: %w", err)
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

// Remove stops the server and removes its data.
func (s *Server) Remove() error {
	return errors.Join(s.Stop(), os.RemoveAll(s.folder))
}

func (s *Server) waitUntilReady() error {
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
