package lifecycle

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// gcPercent replaces Go's default of 100 unless GOGC is set. A broker under full load spends a seventh of its time on garbage collection at
// 100. At 300 it is a twentieth, but 10,000 operations then need 127 MiB in place of 51.
const gcPercent = 150

// Main runs a program until it ends, or until SIGINT or SIGTERM cancels its context. It writes the program's error to the writer and returns
// the exit code, 0 or 1. A second signal kills the process.
func Main(program func(ctx context.Context) error, errors io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	// After the first signal, signals have their default effect again.
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
