package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	_ "time/tzdata" // container images have no time zone files; the files of a system take precedence

	"github.com/sirupsen/logrus"

	_ "golang.org/x/crypto/x509roots/fallback" // container images have no CA certificates; the certificates of a system take precedence
)

// gcPercent replaces Go's default of 100, unless the GOGC variable is set. It is a compromise between CPU time and memory. With
// 100, a broker under full load spends a seventh of its CPU time on garbage collection, and 10,000 operations need 51 MiB. With
// 300, it spends a twentieth, but needs 127 MiB.
const gcPercent = 150

// loggedError marks an error that the program's log already contains.
type loggedError struct{ error }

// Unwrap returns the error without the mark.
func (e loggedError) Unwrap() error { return e.error }

// Log writes the error that ends a program to its log, so that Main does not print it again. It returns nil for nil.
func Log(log logrus.FieldLogger, err error) error {
	if err == nil {
		return nil
	}

	log.WithError(err).Error("the service stops because of an error")

	return loggedError{err}
}

// Main runs a program and returns the exit code: 0, or 1 after an error. It writes the error to failures, unless Log has already
// logged it. SIGINT or SIGTERM ends the program's context; a second signal kills the process.
func Main(program func(ctx context.Context) error, failures io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	// After the first signal, restore the default handling, so a second signal kills the process.
	defer context.AfterFunc(ctx, stop)()

	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}

	if err := program(ctx); err != nil {
		if !errors.As(err, &loggedError{}) {
			fmt.Fprintln(failures, err)
		}

		return 1
	}

	return 0
}
