package process_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/process"
)

func TestPortsSurviveARestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ports.json")
	etcd, server := draw(t, path, "etcd"), draw(t, path, "server")
	if etcd == server {
		t.Errorf("two servers got the same port %d", etcd)
	}
	if again := draw(t, path, "etcd"); again != etcd {
		t.Errorf("after a restart the server got port %d, want %d", again, etcd)
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ports.json")
	draw(t, path, "runtime")
	ports := open(t, path)
	for range 2 { // releasing an unknown server is not an error
		if err := ports.Release("runtime"); err != nil {
			t.Fatal(err)
		}
	}
	content := open(t, path)
	if err := content.Release("runtime"); err != nil {
		t.Errorf("the release was not stored: %v", err)
	}
}

func TestWaitFreeNamesTheAddress(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	taken := listener.Addr().(*net.TCPAddr).Port
	err = process.WaitFree(ctx, taken)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), freeport.Address(taken)) {
		t.Errorf("waiting for a port in use: got %v, want an error with the canceled context and the address", err)
	}
}

func draw(t *testing.T, path, owner string) int {
	t.Helper()
	number, err := open(t, path).Port(owner)
	if err != nil {
		t.Fatal(err)
	}
	// If a parallel test starts a program, the program inherits the socket that Port opens for its check, until the program calls
	// execve.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := process.WaitFree(ctx, number); err != nil {
		t.Errorf("the port of %s is not free: %v", owner, err)
	}
	return number
}

func open(t *testing.T, path string) *process.Ports {
	t.Helper()
	ports, err := process.OpenPorts(path)
	if err != nil {
		t.Fatal(err)
	}
	return ports
}
