package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/environment-broker/environment-broker/test/bench/floor"
)

// floorCommand is the argument that makes the program serve the floors.
const floorCommand = "floor"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)

	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)

	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures the chosen figures and writes the page, or serves the floors. The page is written even if some figures fail.
func run(ctx context.Context, arguments []string, output, log io.Writer) error {
	if len(arguments) == 1 && arguments[0] == floorCommand {
		return floor.Run(ctx)
	}

	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	only := flags.String("only", "", "figures to measure, comma-separated; all of them unless set")
	runs := flags.Int("runs", 5, "runs of each figure that is reported as a median")
	path := flags.String("out", "", "file for the page; standard output unless set")

	if err := flags.Parse(arguments); err != nil {
		return fmt.Errorf("reading the arguments: %w", err)
	}

	figures, err := chosen(*only)
	if err != nil {
		return err
	}

	page, err := measureAll(ctx, figures, *runs, log)

	switch {
	case page == "":
		return err
	case *path != "":
		//nolint:gosec // a page of the documentation is for everybody
		return errors.Join(err, os.WriteFile(*path, []byte(page), 0o644))
	default:
		_, written := io.WriteString(output, page)

		return errors.Join(err, written)
	}
}

// measureAll measures the figures one after the other and returns the page. Failed figures are marked in the page and joined in the error.
func measureAll(ctx context.Context, figures []figure, runs int, log io.Writer) (page string, err error) {
	b, err := newBench(ctx, runs, log)
	if err != nil {
		return "", err
	}

	defer func() { err = errors.Join(err, b.Close()) }()

	var (
		lines  []line
		failed []error
	)

	for _, figure := range figures {
		b.progress("%s …", figure.name)

		if err := b.scoped(func(s *scope) error {
			measured, err := figure.measure(ctx, s)
			lines = append(lines, measured...)

			return err
		}); err != nil {
			b.progress("%s: %v", figure.name, err)

			failed = append(failed, fmt.Errorf("measuring %s: %w", figure.name, err))
			lines = append(lines, line{what: figure.name, measured: "could not be measured", reached: verdict(false)})
		}

		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}

	err = b.scoped(func(s *scope) error {
		machine, err := s.machine(ctx)
		page = render(machine, runs, lines)

		return err
	})

	return page, errors.Join(append(failed, err)...)
}
