package lifecycle_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
)

// stuck is an environment variable of the child process. It makes the test binary run ignoreSignal instead of the tests.
const stuck = "TEST_LIFECYCLE_STUCK"

// TestSecondSignalEndsTheProgram checks that a second signal kills a program that hangs while it stops. The program is a
// child process, which runs ignoreSignal.
func TestSecondSignalEndsTheProgram(t *testing.T) {
	if os.Getenv(stuck) != "" {
		ignoreSignal()
	}

	const patience = 2 * time.Minute

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSecondSignalEndsTheProgram$")
	child.Env = append(os.Environ(), stuck+"=1")

	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := child.Start(); err != nil {
		t.Fatal(err)
	}

	lines := bufio.NewScanner(output)

	for _, want := range []string{"runs", "stops"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the program printed %q, want %q", lines.Text(), want)
		}

		if err := child.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}

	ended := make(chan struct{})

	go func() {
		defer close(ended)

		_ = child.Wait() // the error reports the signal
	}()

	// The child process prints a line when it starts to stop, and restores the default handling of signals soon afterwards.
	// Signals in between have no effect, so the test sends several.
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()

	for running := true; running; {
		select {
		case <-ended:
			running = false
		case <-again.C:
			_ = child.Process.Signal(syscall.SIGTERM) // the child may have ended
		}
	}

	if status, _ := child.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("the program ended with %s, want by the second signal", child.ProcessState)
	}
}

// ignoreSignal runs a program that hangs after its first signal.
func ignoreSignal() {
	lifecycle.Main(func(ctx context.Context) error {
		fmt.Println("runs")
		<-ctx.Done()
		fmt.Println("stops")
		<-time.After(time.Hour)

		return nil
	}, os.Stderr)
}

func TestErrorsOfPrograms(t *testing.T) {
	cause := errors.New("the lease is lost")

	for name, test := range map[string]struct {
		reason    string
		logged    bool
		err       error
		wantPrint string
		wantCode  int
	}{
		"Settings": {"a program without a log prints its error", false, cause, "the lease is lost\n", 1},
		"Logged":   {"an error in the log is not repeated in another format", true, cause, "", 1},
		"Success":  {"no error, no line", true, nil, "", 0},
	} {
		var printed strings.Builder

		log, entries := logtest.NewNullLogger()

		code := lifecycle.Main(func(context.Context) error {
			if test.logged {
				return lifecycle.Log(log, test.err)
			}

			return test.err
		}, &printed)

		lines := len(entries.AllEntries())
		if code != test.wantCode || printed.String() != test.wantPrint || (lines == 1) != (test.logged && test.err != nil) {
			t.Errorf("%s: %s: got code %d, output %q, %d lines in the log", name, test.reason, code, printed.String(), lines)
		}
	}
}
