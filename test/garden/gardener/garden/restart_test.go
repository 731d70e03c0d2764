package main_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/conformance"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

// TestRestart ends a garden, in order or not, and starts another in its folder: it has to go on where the first was.
func TestRestart(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		mode   string
		signal syscall.Signal
	}{
		"killed, own runtimes":       {"own", syscall.SIGKILL},
		"killed, shared runtimes":    {"shared", syscall.SIGKILL},
		"killed, simulated runtimes": {"simulated", syscall.SIGKILL},
		"stopped in order":           {"own", syscall.SIGTERM},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			first := start(t, dir, "--runtimes", test.mode)
			garden := first.member(t)
			runtime := adminOf(t, garden, createShoot(t, garden, "ready"))
			createNamespace(t, runtime, "hello")
			if err := garden.Create(t.Context(), conformance.Shoot(gardenlet.Namespace(project), "under-way")); err != nil {
				t.Fatal(err)
			}

			servers := first.servers(t)
			first.end(t, test.signal)
			awaitEnd(t, servers)

			// All that was given out before has to go on working: the clients of the garden and those of the runtime.
			start(t, dir, "--runtimes", test.mode)
			awaitShoot(t, garden, "ready")
			eventually(t, "the runtime answers again", func(ctx context.Context) error { return getNamespace(ctx, runtime, "hello") })
			createNamespace(t, adminOf(t, garden, awaitShoot(t, garden, "under-way")), "world")
		})
	}
}

// TestSecondGarden starts a garden in the folder of one that runs.
func TestSecondGarden(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start(t, dir)
	second, output := launch(t, dir)
	if output.Scan() {
		t.Errorf("a second garden in the same folder said %q", output.Text())
	}
	if err := second.wait(); err == nil || !strings.Contains(second.log.String(), "another garden runs in this folder") {
		t.Errorf("a second garden in the same folder ended with %v and said %q", err, second.log)
	}
}

// TestLostServer kills one of the servers: a garden that is not whole ends and says what is missing.
func TestLostServer(t *testing.T) {
	t.Parallel()
	garden := start(t, t.TempDir())
	servers := garden.servers(t)
	for _, server := range servers {
		if server.name != "gardener-apiserver" {
			continue
		}
		if err := syscall.Kill(server.pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if err := garden.wait(); err == nil || !strings.Contains(garden.log.String(), "gardener-apiserver ended: signal: killed") {
		t.Errorf("without its API server the garden ended with %v and said %q", err, garden.log)
	}
	awaitEnd(t, servers)
}

// server is a process that a garden has started.
type server struct {
	name string
	pid  int
}

// servers returns what the garden has started and what runs now, as Linux tells it.
func (p *process) servers(t *testing.T) []server {
	t.Helper()
	pattern := fmt.Sprintf("/proc/%d/task/*/children", p.command.Process.Pid)
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var servers []server
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for field := range strings.FieldsSeq(string(content)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			path, err := executable(pid)
			if err != nil {
				t.Fatal(err)
			}
			servers = append(servers, server{name: filepath.Base(path), pid: pid})
		}
	}
	if len(servers) < 3 {
		t.Fatalf("a garden has three servers at least, %s name %v", pattern, servers)
	}
	return servers
}

// awaitEnd waits until servers are gone.
func awaitEnd(t *testing.T, servers []server) {
	t.Helper()
	for _, server := range servers {
		eventually(t, server.name+" is gone", func(context.Context) error {
			if path, err := executable(server.pid); err == nil {
				return fmt.Errorf("process %d runs %s", server.pid, path)
			}
			return nil
		})
	}
}

// executable returns what a process runs. One that has ended runs nothing, even while nobody has taken note of its end.
func executable(pid int) (string, error) {
	return os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
}
