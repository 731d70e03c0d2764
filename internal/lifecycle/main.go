package lifecycle

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // images have no time zone files; those of a system take precedence

	_ "golang.org/x/crypto/x509roots/fallback" // images have no CA certificates; those of a system take precedence
)

// gcPercent replaces Go's default of 100, unless the variable GOGC is set. With 100, a broker under full load spends a seventh of its CPU time
// on garbage collection. With 300 it spends a twentieth, but 10,000 operations need 127 MiB of memory in place of 51.
const gcPercent = 150

// Main runs a program. SIGINT or SIGTERM ends the program's context; a second signal kills the process. Main writes the error of the program
// to the writer and returns the exit code: 0, or 1 after an error.
func Main(program func(ctx context.Context) error, errors io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	// After the first signal, stop restores the default effect of signals.
	defer context.AfterFunc(ctx, stop)()

	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}

	if err := program(ctx); err != nil {
		fmt.Fprintln(errors, err)

		return 1
	}

	return 0
}
