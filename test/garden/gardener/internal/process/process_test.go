package process_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/process"
)

func TestStopSendsSIGTERM(t *testing.T) {
	t.Parallel()
	process, log := start(t, `trap 'echo asked; exit 0' TERM; echo begun; while :; do sleep 0.01; done`)
	awaitLog(t, process, log, "begun")
	if err := process.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if content := read(t, log); !strings.Contains(content, "asked") {
		t.Errorf("the process received no SIGTERM; its log is %q", content)
	}
}

func TestStopKillsAfterTheContext(t *testing.T) {
	t.Parallel()
	process, log := start(t, `trap '' TERM; echo begun; exec sleep 1000`)
	awaitLog(t, process, log, "begun")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := process.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := process.Err(); !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("the process exited with %v, want it to be killed", err)
	}
}

func TestStopOfAnEndedProcess(t *testing.T) {
	t.Parallel()
	process, _ := start(t, `exit 0`)
	<-process.Exited()
	if err := process.Stop(t.Context()); err != nil {
		t.Errorf("stopping a process that has already exited failed: %v", err)
	}
}

func TestWaitReadyReportsTheEndOfTheProcess(t *testing.T) {
	t.Parallel()
	process, _ := start(t, `echo no data folder >&2; exit 3`)
	err := process.WaitReady(t.Context(), func(context.Context) error { return errors.New("connection refused") })
	for _, want := range []string{"test ended: exit status 3", "no data folder"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that contains %q", err, want)
		}
	}
}

func TestPreviousLogIsKept(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "logs", "test.log")
	for _, word := range []string{"first", "second"} {
		<-startWithLog(t, "echo "+word, log).Exited()
	}
	if got := read(t, log); got != "second\n" {
		t.Errorf("the log is %q, want that of the second start", got)
	}
	if got := read(t, log+".previous"); got != "first\n" {
		t.Errorf("the previous log is %q, want that of the first start", got)
	}
}

func start(t *testing.T, script string) (*process.Process, string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "test.log")
	return startWithLog(t, script, log), log
}

func startWithLog(t *testing.T, script, log string) *process.Process {
	t.Helper()
	process, err := process.Start(process.Spec{Name: "test", Path: "/bin/sh", Args: []string{"-c", script}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Kill(); err != nil {
			t.Error(err)
		}
	})
	return process
}

func awaitLog(t *testing.T, process *process.Process, log, want string) {
	t.Helper()
	if err := process.WaitReady(t.Context(), func(context.Context) error {
		if content := read(t, log); !strings.Contains(content, want) {
			return errors.New("the log is " + content)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
