package main

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/test/bench/load"
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
		subjects = append(subjects, measure.Subject[finished]{Name: name, Run: func() (run finished, err error) {
			err = s.scoped(func(s *scope) error {
				run, err = s.finishAll(ctx, size)

				return err
			})
			s.progress("%s: %.0f operations/s, %.1f commits and %.1f calls an operation, CPU an operation: broker %s, PostgreSQL %s",
				name, run.perSecond, run.commits, run.calls, run.used.broker, run.used.postgres)

			return run, err
		}})
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

func throughputLines(name string, size int, runs []finished) []line {
	var (
		rates, commits, calls []float64
		broker, postgres      []time.Duration
	)

	for _, run := range runs {
		rates, commits, calls = append(rates, run.perSecond), append(commits, run.commits), append(calls, run.calls)
		broker, postgres = append(broker, run.used.broker), append(postgres, run.used.postgres)
	}

	rate, commit := measure.Median(rates), measure.Median(commits)
	kinds := runs[len(runs)-1].kinds

	return []line{
		{
			what: name + ", accepted to all done: operations/s", measured: rounded(rate),
			must: fmt.Sprintf("≥ %d", throughputLeast), reached: verdict(rate >= throughputLeast),
		},
		{
			what: "the same: commits an operation", measured: fmt.Sprintf("%.1f", commit),
			must: fmt.Sprintf("≤ %d", commitsMost), reached: verdict(commit <= commitsMost),
		},
		{
			what:     "the same: CPU time an operation, of broker and of PostgreSQL",
			measured: inMilliseconds(broker) + ", " + inMilliseconds(postgres),
		},
		{
			what: fmt.Sprintf("the same: calls an operation (of %d in the last run: orders %d, states %d, kubeconfigs %d, runtimes %d, changes %d)",
				size, kinds.Orders, kinds.Statuses, kinds.Kubeconfigs, kinds.Probes, kinds.Feeds),
			measured: fmt.Sprintf("%.1f", measure.Median(calls)),
		},
	}
}

// finishAll creates size instances and waits until all are ready.
func (s *scope) finishAll(ctx context.Context, size int) (finished, error) {
	w, err := s.newEnv(ctx, simulated.Behaviour{}, false)
	if err != nil {
		return finished{}, err
	}

	before, err := s.commits(ctx)
	if err != nil {
		return finished{}, err
	}

	usedBefore, err := s.used(w)
	if err != nil {
		return finished{}, err
	}

	generator := load.New(clients)
	defer generator.Close()

	began := time.Now()

	if _, err := generator.Count(ctx, size, creates(w.broker.url, manyTenants)); err != nil {
		return finished{}, err
	}

	if err := waitForRows(ctx, w.db, allSucceeded, size); err != nil {
		return finished{}, err
	}

	used, err := s.used(w)
	if err != nil {
		return finished{}, err
	}

	calls := w.provisioner.Calls()

	ended, err := w.lastEnd(ctx)
	if err != nil {
		return finished{}, err
	}

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
func (s *scope) used(w env) (used cpu, err error) {
	if used.broker, err = w.broker.CPU(); err != nil {
		return cpu{}, err
	}

	used.postgres, err = program.CPUOf(s.postgres.ID())

	return used, err
}

// commits returns the number of writing transactions on the server: PostgreSQL numbers only these.
func (s *scope) commits(ctx context.Context) (commits int, err error) {
	err = s.scoped(func(s *scope) error {
		elsewhere, err := s.open(anyDatabase)
		if err != nil {
			return err
		}

		return elsewhere.GetContext(ctx, &commits, `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint`)
	})
	if err != nil {
		return 0, fmt.Errorf("counting commits: %w", err)
	}

	return commits, nil
}
