package lifecycle

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"syscall"
)

// Main runs a program until it ends or is told to stop by SIGINT or SIGTERM, and returns its exit code. What went wrong is
// written to the output.
func Main(program func(ctx context.Context) error, errors io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	if err := program(ctx); err != nil {
		fmt.Fprintln(errors, err)

		return 1
	}

	return 0
}
