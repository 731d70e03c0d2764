package main

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/test/bench/measure"
	"github.com/environment-broker/environment-broker/test/bench/program"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

const (
	throughputLeast = 200
	commitsMost     = 10
)

// finished is the cost of running a number of operations.
type finished struct {
	perSecond float64
	// commits and calls are per operation.
	commits, calls float64
	kinds          simulated.Calls
	// used is the CPU time per operation.
	used cpu
}

// cpu is the CPU time of the programs.
type cpu struct{ broker, postgres time.Duration }

// measureThroughput measures finished operations per second with a Provisioner that answers at once.
func measureThroughput(ctx context.Context, s *scope) ([]line, error) {
	sizes := []int{1_000, 5_000}
	subjects := make([]measure.Subject[finished], 0, len(sizes))

	for _, size := range sizes {
		name := createsOf(size)
		subjects = append(subjects, inScope(s, name, func(s *scope) (finished, error) {
			run, err := s.finishAll(ctx, size)
			s.progress("%s: %.0f operations/s, %.1f commits and %.1f calls an operation, CPU an operation: broker %s, PostgreSQL %s",
				name, run.perSecond, run.commits, run.calls, run.used.broker, run.used.postgres)

			return run, err
		}))
	}

	runs, err := measure.InTurn(s.runs, subjects...)
	if err != nil {
		return nil, err
	}

	var lines []line

	for _, size := range sizes {
		lines = append(lines, throughputLines(createsOf(size), size, runs[createsOf(size)])...)
	}

	return lines, nil
}

func createsOf(size int) string { return fmt.Sprintf("%d creates", size) }

// throughputLines returns the figures of one size. The calls by kind are those of the last run.
func throughputLines(name string, size int, runs []finished) []line {
	rate := measure.MedianOf(runs, func(run finished) float64 { return run.perSecond })
	commits := measure.MedianOf(runs, func(run finished) float64 { return run.commits })
	calls := measure.MedianOf(runs, func(run finished) float64 { return run.calls })
	broker := measure.MedianOf(runs, func(run finished) time.Duration { return run.used.broker })
	postgres := measure.MedianOf(runs, func(run finished) time.Duration { return run.used.postgres })
	kinds := runs[len(runs)-1].kinds

	return []line{
		target(name+", accepted to all done: operations/s", rounded(rate), fmt.Sprintf("≥ %d", throughputLeast), rate >= throughputLeast),
		target("the same: commits an operation", fmt.Sprintf("%.1f", commits), fmt.Sprintf("≤ %d", commitsMost), commits <= commitsMost),
		{
			what:     "the same: CPU time an operation, of broker and of PostgreSQL",
			measured: inMilliseconds(broker) + ", " + inMilliseconds(postgres),
		},
		{
			what: fmt.Sprintf("the same: calls an operation (of %d in the last run: orders %d, states %d, kubeconfigs %d, runtimes %d, changes %d)",
				size, kinds.Orders, kinds.Statuses, kinds.Kubeconfigs, kinds.Probes, kinds.Feeds),
			measured: fmt.Sprintf("%.1f", calls),
		},
	}
}

// finishAll creates size instances and waits until all are ready.
func (s *scope) finishAll(ctx context.Context, size int) (finished, error) {
	e, err := s.newEnv(ctx, simulated.Behaviour{}, false)
	if err != nil {
		return finished{}, err
	}

	before, err := s.commits(ctx)
	if err != nil {
		return finished{}, err
	}

	usedBefore, err := s.used(e)
	if err != nil {
		return finished{}, err
	}

	began := time.Now()

	if _, err := e.create(ctx, size); err != nil {
		return finished{}, err
	}

	ended, err := e.finish(ctx, size)
	if err != nil {
		return finished{}, err
	}

	used, err := s.used(e)
	if err != nil {
		return finished{}, err
	}

	calls := e.provisioner.Calls()

	after, err := s.commits(ctx)
	if err != nil {
		return finished{}, err
	}

	return finished{
		perSecond: float64(size) / ended.Sub(began).Seconds(),
		commits:   float64(after-before) / float64(size),
		calls:     float64(calls.All()) / float64(size),
		kinds:     calls,
		used: cpu{
			broker:   (used.broker - usedBefore.broker) / time.Duration(size),
			postgres: (used.postgres - usedBefore.postgres) / time.Duration(size),
		},
	}, nil
}

// used returns the CPU time so far.
func (s *scope) used(e env) (used cpu, err error) {
	if used.broker, err = e.broker.CPU(); err != nil {
		return cpu{}, err
	}

	used.postgres, err = program.CPUOf(s.postgres.ID())

	return used, err
}

// commits returns the number of writing transactions on the server so far: PostgreSQL assigns transaction IDs to these only.
func (s *scope) commits(ctx context.Context) (commits int, err error) {
	err = s.scoped(func(s *scope) error {
		db, err := s.open(anyDatabase)
		if err != nil {
			return err
		}

		return db.GetContext(ctx, &commits, `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint`)
	})
	if err != nil {
		return 0, fmt.Errorf("counting commits: %w", err)
	}

	return commits, nil
}
