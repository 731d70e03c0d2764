package main_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/conformance"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

const (
	// commandVariable is the environment variable that contains the path of the command under test.
	commandVariable = "GARDEN_UNDER_TEST"

	project = "local"
	// patience is how long a test waits for a garden.
	patience = 5 * time.Minute
)

// garden is a garden that runs as a separate process.
type garden struct {
	dir        string
	kubeconfig string
	command    *exec.Cmd
	log        *bytes.Buffer
	ended      bool
}

// launch starts a garden in a folder and returns without waiting until it is ready.
func launch(t *testing.T, dir string, arguments ...string) (*garden, *bufio.Scanner) {
	t.Helper()
	arguments = append([]string{"--dir", dir, "--bin-dir", binaries, "--cluster-creation", "2s"}, arguments...)
	p := &garden{dir: dir, command: exec.Command(os.Getenv(commandVariable), arguments...), log: &bytes.Buffer{}}
	p.command.Stderr = p.log
	output, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !p.ended {
			p.end(t, syscall.SIGTERM)
		}
		if t.Failed() {
			t.Logf("the log of the garden:\n%s", p.log)
		}
	})
	return p, bufio.NewScanner(output)
}

// start starts a garden in a folder and waits until it is ready.
func start(t *testing.T, dir string, arguments ...string) *garden {
	t.Helper()
	p, output := launch(t, dir, arguments...)
	overdue := time.AfterFunc(patience, func() { _ = p.command.Process.Kill() })
	defer overdue.Stop()
	if !output.Scan() {
		t.Fatalf("the garden exited before it was ready: %v", output.Err())
	}
	path, found := strings.CutPrefix(output.Text(), "garden ready kubeconfig=")
	if !found {
		t.Fatalf("the garden printed %q, want the line with the kubeconfig", output.Text())
	}
	p.kubeconfig = path
	return p
}

func (p *garden) end(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		t.Fatalf("sending %s to the garden: %v", signal, err)
	}
	err := p.wait()
	if signal != syscall.SIGKILL && err != nil {
		t.Errorf("after %s the garden exited with an error: %v", signal, err)
	}
}

func (p *garden) wait() error {
	p.ended = true
	return p.command.Wait()
}

// member returns a client with the rights of the services.
func (p *garden) member(t *testing.T) client.WithWatch {
	t.Helper()
	return connect(t, p.kubeconfig)
}

// operator returns a client with all rights.
func (p *garden) operator(t *testing.T) client.WithWatch {
	t.Helper()
	return connect(t, filepath.Join(p.dir, "admin.kubeconfig"))
}

func connect(t *testing.T, kubeconfig string) client.WithWatch {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // no rate limit
	types, err := fakegarden.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: types})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// underTest returns the garden as a parameter for package conformance.
func (p *garden) underTest(t *testing.T) conformance.Garden {
	t.Helper()
	return conformance.Garden{Client: p.operator(t), Namespace: gardenlet.Namespace(project), Project: project, Patience: patience}
}
