package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

const (
	slowRuntimes = 200
	slowTakes    = time.Minute
	slowLimit    = 66 * time.Second
)

// measureWaiting measures more runtimes than workers, each of which takes a minute, with a feed and polled. Both run at the same time, because
// they mostly wait.
func measureWaiting(ctx context.Context, s *scope) ([]line, error) {
	kinds := []string{"with the feed", "polled"}
	took, errs := make([]time.Duration, len(kinds)), make([]error, len(kinds))

	var measured sync.WaitGroup

	envs := make([]env, len(kinds))

	for i := range kinds {
		e, err := s.newEnv(ctx, simulated.Behaviour{Takes: slowTakes, KymaProvisioner: i == 1}, false)
		if err != nil {
			return nil, err
		}

		envs[i] = e
	}

	for i, e := range envs {
		measured.Go(func() { took[i], errs[i] = e.finishSlowly(ctx) })
	}

	measured.Wait()

	lines := make([]line, 0, len(kinds))

	for i, kind := range kinds {
		if errs[i] != nil {
			return nil, fmt.Errorf("%s: %w", kind, errs[i])
		}

		s.progress("%d runtimes of %s, %s: %s", slowRuntimes, slowTakes, kind, took[i])
		lines = append(lines, target(fmt.Sprintf("%d runtimes that take 60 s each, %s: all done (one run)", slowRuntimes, kind),
			inSeconds(took[i]), "≤ 66 s", took[i] <= slowLimit))
	}

	return lines, nil
}

// finishSlowly returns the time from the first request to the end of the last operation.
func (e env) finishSlowly(ctx context.Context) (time.Duration, error) {
	began := time.Now()

	if _, err := e.create(ctx, slowRuntimes); err != nil {
		return 0, err
	}

	ended, err := e.finish(ctx, slowRuntimes)

	return ended.Sub(began), err
}
