package main

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/measure"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

const (
	pickUps     = 100
	pickUpPause = 30 * time.Millisecond
	pickUpLimit = 10 * time.Millisecond
)

// measurePickUp measures how long an operation waits for a worker of an idle broker. The time starts with the acceptance, slightly before the
// commit.
func measurePickUp(ctx context.Context, s *scope) ([]line, error) {
	runs, err := repeat(s, "pick-up", func(s *scope) (time.Duration, error) {
		waits, err := s.pickUps(ctx)
		half := measure.Median(waits)
		s.progress("pick-up: p50 %s, p99 %s", half, measure.Percentile(waits, 0.99))

		return half, err
	})
	if err != nil {
		return nil, err
	}

	half := measure.Median(runs)

	return []line{target("pick-up, accepted to start of the first step: p50", inMilliseconds(half), "≤ 10 ms", half <= pickUpLimit)}, nil
}

// pickUps creates instances one after the other, with a pause in which the broker becomes idle again, and returns the waits in the order of
// the database.
func (s *scope) pickUps(ctx context.Context) ([]time.Duration, error) {
	e, err := s.newEnv(ctx, simulated.Behaviour{}, false)
	if err != nil {
		return nil, err
	}

	generator := load.New(1)
	defer generator.Close()

	create := creates(e.broker.url, manyTenants)
	pause := time.NewTicker(pickUpPause)

	defer pause.Stop()

	for number := range pickUps {
		if _, err := generator.Send(ctx, create(number)); err != nil {
			return nil, err
		}

		<-pause.C
	}

	if err := waitForRows(ctx, e.db, allSucceeded, pickUps); err != nil {
		return nil, err
	}

	var waits []time.Duration

	// time.Duration counts nanoseconds.
	if err := e.db.SelectContext(ctx, &waits, `SELECT (extract(epoch FROM min(began_at) - created_at) * 1e9)::bigint
		FROM operations JOIN timeline ON operation_id = id WHERE timeline.step <> '' GROUP BY id`); err != nil {
		return nil, fmt.Errorf("reading the timelines: %w", err)
	}

	return waits, nil
}
