// Command ebctl is the command-line tool for operators of an environment broker.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
	_ "time/tzdata" // images have no time zone files

	"github.com/google/uuid"
	_ "golang.org/x/crypto/x509roots/fallback" // images have no CA certificates
	"golang.org/x/term"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/ebctl"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/program"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	// The first signal cancels the command. It also restores the default handling of signals, so a second signal terminates the
	// process.
	context.AfterFunc(ctx, stop)

	return ebctl.App{
		In:           os.Stdin,
		Out:          os.Stdout,
		Err:          os.Stderr,
		Environment:  os.Getenv,
		Environ:      os.Environ(),
		Terminal:     terminal,
		Colors:       func() bool { return os.Getenv("TERM") != "dumb" && term.IsTerminal(int(os.Stdout.Fd())) },
		Interactive:  func() bool { return term.IsTerminal(int(os.Stdin.Fd())) },
		ReadPassword: readPassword,
		Keys:         keys,
		Clock:        clock.RealClock{},
		NewID:        uuid.NewString,
		PollInterval: time.Second,
		Version:      program.ReadBuild().Version,
	}.Run(ctx, os.Args[1:])
}

// terminal returns the size of the terminal connected to standard error. It returns false if standard error is not
// a terminal, or if the terminal cannot move its cursor (TERM=dumb); progress is then printed line by line.
func terminal() (follow.Size, bool) {
	if os.Getenv("TERM") == "dumb" {
		return follow.Size{}, false
	}

	width, height, err := term.GetSize(int(os.Stderr.Fd()))

	return follow.Size{Width: width, Height: height}, err == nil
}

// readPassword reads a line from standard input without echoing it.
func readPassword() (string, error) {
	password, err := term.ReadPassword(int(os.Stdin.Fd()))

	return string(password), err
}

// keys switches standard input to raw mode, so that each key arrives immediately and is not echoed. It returns the pressed keys
// and a function that restores the previous mode. The goroutine that reads the keys ends only with the process, because a read
// from a terminal cannot be interrupted.
func keys() (<-chan byte, func(), error) {
	input := int(os.Stdin.Fd())

	former, err := term.MakeRaw(input)
	if err != nil {
		return nil, nil, err
	}

	pressed := make(chan byte)

	go func() {
		defer close(pressed)

		var key [1]byte
		for {
			if _, err := os.Stdin.Read(key[:]); err != nil {
				return
			}

			pressed <- key[0]
		}
	}()

	return pressed, func() { _ = term.Restore(input, former) }, nil
}
