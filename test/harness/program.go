package harness

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
	"github.com/environment-broker/environment-broker/test/sources"
)

// Root is the path of the repository, relative to a test package in a direct subfolder of test/.
const Root = "../.."

// builds maps the name of a program to a function that builds it once per test run and returns its path.
var builds struct {
	sync.Mutex

	programs map[string]func() (path string, err error)
}

// Build builds a program in cmd/ from the working tree, unless this test run has already built it, and returns the binary's path.
// The binaries stay in .bin, because checking that a binary is up to date takes one second, while linking it takes five.
func Build(tb testing.TB, command string) string {
	tb.Helper()

	builds.Lock()

	if builds.programs == nil {
		builds.programs = map[string]func() (string, error){}
	}

	if builds.programs[command] == nil {
		builds.programs[command] = sync.OnceValues(func() (string, error) { return compile(command) })
	}

	build := builds.programs[command]

	builds.Unlock()

	path, err := build()
	if err != nil {
		tb.Fatal(err)
	}

	return path
}

// compile builds a program under a lock, because the tests of several packages build concurrently. All binaries have the same time:
// go build renews the time of a binary that is up to date, and go test would take it for a change and repeat a test whose result
// is cached.
func compile(command string) (path string, err error) {
	path, err = filepath.Abs(filepath.Join(Root, ".bin", "tested", command))
	if err != nil {
		return "", err
	}

	// MkdirAll would read the folder, and the result of the test would expire when another test builds another program.
	for _, folder := range []string{filepath.Dir(filepath.Dir(path)), filepath.Dir(path)} {
		if err := os.Mkdir(folder, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}

	if err := sources.Open(Root, "./cmd/"+command); err != nil {
		return "", err
	}

	lock := flock.New(path + ".lock")
	if err := lock.Lock(); err != nil {
		return "", fmt.Errorf("locking %s: %w", path, err)
	}

	defer func() { err = errors.Join(err, lock.Unlock()) }()

	builder := exec.Command("go", "build", "-buildvcs=false", "-o", path, "./cmd/"+command)
	builder.Dir = Root

	if output, err := builder.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", command, err, output)
	}

	return path, os.Chtimes(path, time.Time{}, time.Unix(0, 0))
}

// Program is a running process.
type Program struct {
	testing.TB

	// Ended is closed when the process has ended.
	Ended chan struct{}

	command *exec.Cmd
	log     string
	lines   chan string
}

// Launch starts a program with additional environment variables and stops it when the test ends. If the test fails, Launch logs
// the last lines of the program's log.
func Launch(tb testing.TB, variables []string, path string, arguments ...string) *Program {
	tb.Helper()

	log, err := os.Create(filepath.Join(tb.TempDir(), filepath.Base(path)+".log"))
	if err != nil {
		tb.Fatal(err)
	}

	command := exec.Command(path, arguments...)
	command.Env = append(os.Environ(), variables...)
	command.Stderr = log

	output, err := command.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}

	if err := command.Start(); err != nil {
		tb.Fatal(err)
	}

	p := &Program{TB: tb, command: command, log: log.Name(), lines: make(chan string, 1), Ended: make(chan struct{})}

	go func() {
		defer close(p.Ended)

		for lines := bufio.NewScanner(output); lines.Scan(); {
			select {
			case p.lines <- lines.Text():
			default:
			}
		}

		_ = command.Wait() // a killed program is expected to return an error
	}()

	tb.Cleanup(func() {
		p.Signal(syscall.SIGCONT)
		p.Signal(syscall.SIGTERM)

		select {
		case <-p.Ended:
		case <-time.After(Patience):
			tb.Errorf("%s has not stopped", path)
			p.Kill()
		}

		if tb.Failed() {
			tb.Logf("log of %s:\n%s", path, LastLines(p.Log()))
		}
	})

	return p
}

// Line waits for the program's first line of output and returns it.
func (p *Program) Line() string {
	p.Helper()

	select {
	case line := <-p.lines:
		return line
	case <-p.Ended:
		p.Fatal("the program ended without any output")
	case <-time.After(Patience):
		p.Fatalf("no output for %s", Patience)
	}

	return ""
}

// Log returns the standard error output of the program.
func (p *Program) Log() string {
	p.Helper()

	content, err := os.ReadFile(p.log)
	if err != nil {
		p.Error(err)
	}

	return string(content)
}

// Signal sends a signal. It has no effect if the program has ended.
func (p *Program) Signal(signal syscall.Signal) { _ = p.command.Process.Signal(signal) }

// Kill ends the program with SIGKILL and waits until it has ended. If a child of the program keeps the output open, Kill waits for the
// child too.
func (p *Program) Kill() {
	p.Helper()
	p.Signal(syscall.SIGKILL)

	select {
	case <-p.Ended:
	case <-time.After(Patience):
		p.Errorf("the program has not ended within %s of SIGKILL", Patience)
	}
}

// Terminate sends SIGTERM, waits until the program has ended, and returns its exit code.
func (p *Program) Terminate() (code int) {
	p.Helper()
	p.Signal(syscall.SIGTERM)

	select {
	case <-p.Ended:
	case <-time.After(Patience):
		p.Fatalf("the program has not stopped within %s", Patience)
	}

	return p.ExitCode()
}

// ExitCode returns the exit code of a program that has ended. It is -1 if a signal ended the program.
func (p *Program) ExitCode() int { return p.command.ProcessState.ExitCode() }

// LastLines returns the last 60 lines of a log.
func LastLines(log string) string {
	const lines = 60

	all := strings.Split(log, "\n")

	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// FreeAddress returns an address of the loopback interface with a free port that no other call returns.
func FreeAddress(tb testing.TB) string {
	tb.Helper()

	port, err := freeport.Draw(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}

	return freeport.Address(port)
}

// DatabaseVariables returns the environment variables that make a program use the given database.
func DatabaseVariables(database replica.Database) []string {
	return []string{
		"APP_DATABASE_DRIVER=" + database.Driver,
		"APP_DATABASE_PATH=" + database.Path,
		"APP_DATABASE_USER=" + database.User,
		"APP_DATABASE_PASSWORD=" + database.Password.Reveal(),
		"APP_DATABASE_HOST=" + database.Host,
		"APP_DATABASE_PORT=" + database.Port,
		"APP_DATABASE_NAME=" + database.Name,
		"APP_DATABASE_SSL_MODE=" + database.SSLMode,
		"APP_DATABASE_SECRET_KEYS=" + database.SecretKeys.Reveal(),
	}
}
