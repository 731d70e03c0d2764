package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/test/bench/measure"
)

const (
	// clients is the number of concurrent requests.
	clients = 32
	// warmUp opens connections and fills query plans and caches. A rate is measured for while, after warmUp.
	warmUp = 500 * time.Millisecond
	while  = 2 * time.Second
)

// bench has the parts that all figures share.
type bench struct {
	postgres *postgrestest.Server
	// folder holds the logs and data of a run; Close removes it.
	folder string
	broker string
	// keys seal the rows of all databases, so that one can be copied from another.
	keys secret.String
	runs int
	// log gets a line for each measurement.
	log io.Writer

	databases int
}

// newBench starts PostgreSQL and builds the broker. Close ends what it started.
func newBench(ctx context.Context, runs int, log io.Writer) (*bench, error) {
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}

	b := &bench{folder: folder, keys: secret.NewKey("bench"), runs: runs, log: log, broker: filepath.Join("bin", "broker")}

	build := exec.CommandContext(ctx, "go", "build", "-o", b.broker, "./cmd/broker")
	if output, err := build.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("building the broker: %w\n%s", err, output), b.Close())
	}

	if b.postgres, err = postgrestest.Launch(); err != nil {
		return nil, errors.Join(err, b.Close())
	}

	return b, nil
}

// Close stops PostgreSQL and removes the logs.
func (b *bench) Close() error {
	var stopped error
	if b.postgres != nil {
		stopped = b.postgres.Remove()
	}

	return errors.Join(stopped, os.RemoveAll(b.folder))
}

// progress logs a line.
func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(b.log, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

// scope collects the cleanups of a figure.
type scope struct {
	*bench

	endings []func() error
}

// scoped runs work and then its cleanups, in reverse order.
func (b *bench) scoped(work func(s *scope) error) (err error) {
	s := &scope{bench: b}

	defer func() {
		for _, end := range slices.Backward(s.endings) {
			err = errors.Join(err, end())
		}
	}()

	return work(s)
}

// repeat runs a measurement in the scope's number of rounds. Each run has its own scope.
func repeat[Run any](s *scope, name string, run func(s *scope) (Run, error)) ([]Run, error) {
	runs, err := measure.InTurn(s.runs, inScope(s, name, run))

	return runs[name], err
}

// inScope returns a subject whose runs have their own scopes.
func inScope[Run any](s *scope, name string, run func(s *scope) (Run, error)) measure.Subject[Run] {
	return measure.Subject[Run]{Name: name, Run: func() (result Run, err error) {
		err = s.scoped(func(s *scope) error {
			result, err = run(s)

			return err
		})

		return result, err
	}}
}

// cleanup calls the function when the scope ends.
func (s *scope) cleanup(end func() error) { s.endings = append(s.endings, end) }
