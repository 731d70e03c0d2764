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
)

// root is the project's folder, seen from the tests.
const root = "../.."

// programs are what the tests run. Each is built once, and stays for the next time: to find that it is what the sources say takes a second,
// to link it takes five.
var programs = map[string]func() (string, error){
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

// build builds one of the programs and returns where it is.
func build(t *testing.T, command string) string {
	t.Helper()

	path, err := programs[command]()
	if err != nil {
		t.Fatal(err)
	}

	return path
}

// program is a running program.
type program struct {
	*testing.T

	command *exec.Cmd
	log     string
	lines   chan string
	ended   chan struct{}
}

// launch starts a program with variables of its own. It is stopped, and its log shown if the test failed, when the test ends.
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

		_ = command.Wait() // tests kill programs
	}()

	t.Cleanup(func() {
		p.signal(syscall.SIGCONT)
		p.signal(syscall.SIGTERM)

		select {
		case <-p.ended:
		case <-time.After(patience):
			t.Errorf("%s does not stop", path)
			p.kill()
		}

		if t.Failed() {
			t.Logf("%s said:\n%s", path, tail(p.said()))
		}
	})

	return p
}

// line waits for the first line of output.
func (p *program) line() string {
	p.Helper()

	select {
	case line := <-p.lines:
		return line
	case <-p.ended:
		p.Fatal("the program ended before it said anything")
	case <-time.After(patience):
		p.Fatalf("the program said nothing for %s", patience)
	}

	return ""
}

// said is what the program has logged so far.
func (p *program) said() string {
	p.Helper()

	content, err := os.ReadFile(p.log)
	if err != nil {
		p.Error(err)
	}

	return string(content)
}

func (p *program) signal(signal syscall.Signal) { _ = p.command.Process.Signal(signal) }

// kill ends the program as a crash does, and waits until it is gone.
func (p *program) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// tail is the end of a log.
func tail(log string) string {
	const lines = 60

	all := strings.Split(log, "\n")

	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// freeAddress is an address on the loopback that nobody listens on at this moment.
func freeAddress(t *testing.T) string {
	t.Helper()

	port, err := freeport.Draw(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	return freeport.Address(port)
}
