package lifecycle

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // container images have no time zone files; the files of a system take precedence

	_ "golang.org/x/crypto/x509roots/fallback" // container images have no CA certificates; the certificates of a system take precedence
)

// gcPercent replaces Go's default of 100, unless the variable GOGC is set. It is a compromise between CPU time and memory. With
// 100, a broker under full load spends a seventh of its CPU time on garbage collection, and 10,000 operations need 51 MiB. With
// 300, it spends a twentieth, but needs 127 MiB.
const gcPercent = 150

// Main runs a program and returns the exit code: 0, or 1 after an error. It writes the error to the writer. SIGINT or SIGTERM
// ends the program's context; a second signal kills the process.
func Main(program func(ctx context.Context) error, errors io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	// After the first signal, restore the default handling, so a second signal kills the process.
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
