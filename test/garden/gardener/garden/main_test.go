package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binaries is the folder of the server executables, which build.sh creates.
const binaries = "../../../../.bin"

// TestMain builds the command in this folder. It does not build the servers, because that takes minutes.
func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	for _, server := range []string{"etcd", "kube-apiserver", "gardener-apiserver"} {
		if _, err := os.Stat(filepath.Join(binaries, server)); err != nil {
			fmt.Fprintf(os.Stderr, "%v\nrun test/garden/build.sh first\n", err)
			return 1
		}
	}
	folder, err := os.MkdirTemp("", "garden-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)

	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(folder, "garden"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the garden: %v\n%s", err, output)
		return 1
	}
	if err := os.Setenv(commandVariable, filepath.Join(folder, "garden")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
