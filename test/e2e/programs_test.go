package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
	"github.com/environment-broker/environment-broker/test/harness"
)

// root is the path of the repository, relative to the tests.
const root = "../.."

// binaries maps each program to a function that builds it once per test run and returns its path. The binaries stay in .bin,
// because checking that a binary is up to date takes one second, while linking it takes five.
var binaries = map[string]func() (string, error){
	"broker":      sync.OnceValues(func() (string, error) { return compile("broker") }),
	"provisioner": sync.OnceValues(func() (string, error) { return compile("provisioner") }),
	"sandbox":     sync.OnceValues(func() (string, error) { return compile("sandbox") }),
}

func compile(command string) (string, error) {
	path, err := filepath.Abs(filepath.Join(root, ".bin", "tested", command))
	if err != nil {
		return "", err
	}

	builder := exec.Command("go", "build", "-o", path, "./cmd/"+command)
	builder.Dir = root

	if output, err := builder.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", command, err, output)
	}

	return path, nil
}

// build builds a program if this test run has not built it yet, and returns its path.
func build(t *testing.T, command string) string {
	t.Helper()

	path, err := binaries[command]()
	if err != nil {
		t.Fatal(err)
	}

	return path
}

// program is a running process.
type program struct {
	*testing.T

	command *exec.Cmd
	log     string
	lines   chan string
	ended   chan struct{}
}

// launch starts a program with additional environment variables and stops it when the test ends. If the test fails, launch logs
// the last lines of the program's log.
func launch(t *testing.T, variables []string, path string, arguments ...string) *program {
	t.Helper()

	log, err := os.Create(filepath.Join(t.TempDir(), filepath.Base(path)+".log"))
	if err != nil {
		t.Fatal(err)
	}

	command := exec.Command(path, arguments...)
	command.Env = append(os.Environ(), variables...)
	command.Stderr = log

	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := command.Start(); err != nil {
		t.Fatal(err)
	}

	p := &program{T: t, command: command, log: log.Name(), lines: make(chan string, 1), ended: make(chan struct{})}

	go func() {
		defer close(p.ended)

		for lines := bufio.NewScanner(output); lines.Scan(); {
			select {
			case p.lines <- lines.Text():
			default:
			}
		}

		_ = command.Wait() // the error of a killed program is expected
	}()

	t.Cleanup(func() {
		p.signal(syscall.SIGCONT)
		p.signal(syscall.SIGTERM)

		select {
		case <-p.ended:
		case <-time.After(harness.Patience):
			t.Errorf("%s has not stopped", path)
			p.kill()
		}

		if t.Failed() {
			t.Logf("log of %s:\n%s", path, tail(p.readLog()))
		}
	})

	return p
}

// line waits for the program's first line of output and returns it.
func (p *program) line() string {
	p.Helper()

	select {
	case line := <-p.lines:
		return line
	case <-p.ended:
		p.Fatal("the program ended without any output")
	case <-time.After(harness.Patience):
		p.Fatalf("no output for %s", harness.Patience)
	}

	return ""
}

func (p *program) readLog() string {
	p.Helper()

	content, err := os.ReadFile(p.log)
	if err != nil {
		p.Error(err)
	}

	return string(content)
}

func (p *program) signal(signal syscall.Signal) { _ = p.command.Process.Signal(signal) }

func (p *program) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

func tail(log string) string {
	const lines = 60

	all := strings.Split(log, "\n")

	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func freeAddress(t *testing.T) string {
	t.Helper()

	port, err := freeport.Draw(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	return freeport.Address(port)
}
