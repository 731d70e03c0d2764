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

// TestRestart stops or kills a garden and starts another one in the same folder. The second garden must continue with the data of
// the first.
func TestRestart(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		mode   string
		signal syscall.Signal
	}{
		"killed, own runtimes":       {"own", syscall.SIGKILL},
		"killed, shared runtimes":    {"shared", syscall.SIGKILL},
		"killed, simulated runtimes": {"simulated", syscall.SIGKILL},
		"stopped":                    {"own", syscall.SIGTERM},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			first := start(t, dir, "--runtimes", test.mode)
			garden := first.member(t)
			runtime := adminOf(t, garden, createShoot(t, garden, project, "ready"))
			createNamespace(t, runtime, "hello")
			if err := garden.Create(t.Context(), conformance.Shoot(gardenlet.Namespace(project), "unfinished")); err != nil {
				t.Fatal(err)
			}

			servers := first.servers(t)
			first.end(t, test.signal)
			awaitEnd(t, servers)

			// Clients of the garden and of the runtime must still work after the restart.
			start(t, dir, "--runtimes", test.mode)
			awaitShoot(t, garden, project, "ready")
			eventually(t, "the runtime responds again", func(ctx context.Context) error { return getNamespace(ctx, runtime, "hello") })
			createNamespace(t, adminOf(t, garden, awaitShoot(t, garden, project, "unfinished")), "world")
		})
	}
}

// TestLostServer starts a second garden in the folder of a running one, which must fail, and then kills a server of the first one. This
// garden must exit with an error that names the server.
func TestLostServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	garden := start(t, dir)
	other, output := launch(t, dir)
	if output.Scan() {
		t.Errorf("a second garden in the same folder printed %q", output.Text())
	}
	if err := other.wait(); err == nil || !strings.Contains(other.log.String(), "another garden uses this folder") {
		t.Errorf("a second garden in the same folder exited with %v and printed %q", err, other.log)
	}

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
		t.Errorf("the garden exited with %v after the loss of its API server and printed %q", err, garden.log)
	}
	awaitEnd(t, servers)
}

type server struct {
	name string
	pid  int
}

// servers returns the running child processes of the garden. It works only on Linux.
func (p *garden) servers(t *testing.T) []server {
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
		t.Fatalf("a garden must have at least three servers, but %s lists %v", pattern, servers)
	}
	return servers
}

func awaitEnd(t *testing.T, servers []server) {
	t.Helper()
	for _, server := range servers {
		eventually(t, server.name+" is gone", func(context.Context) error {
			if path, err := executable(server.pid); err == nil {
				return fmt.Errorf("process %d of %s is still running", server.pid, path)
			}
			return nil
		})
	}
}

// executable returns the path of a process's executable. It fails for a zombie process.
func executable(pid int) (string, error) {
	return os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
}
