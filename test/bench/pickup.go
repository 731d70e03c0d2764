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
	runs, err := measure.InTurn(s.runs, measure.Subject[time.Duration]{Name: "pick-up", Run: func() (half time.Duration, err error) {
		err = s.scoped(func(s *scope) error {
			waits, err := s.pickUps(ctx)
			half = measure.Median(waits)
			s.progress("pick-up: p50 %s, p99 %s", half, measure.Percentile(waits, 0.99))

			return err
		})

		return half, err
	}})
	if err != nil {
		return nil, err
	}

	half := runs["pick-up"]

	return []line{{
		what: "pick-up, accepted to start of the first step: p50", measured: inMilliseconds(half), must: "≤ 10 ms",
		reached: verdict(measure.Median(half) <= pickUpLimit),
	}}, nil
}

func (s *scope) pickUps(ctx context.Context) ([]time.Duration, error) {
	w, err := s.newEnv(ctx, simulated.Behaviour{}, false)
	if err != nil {
		return nil, err
	}

	generator := load.New(1)
	defer generator.Close()

	create := creates(w.broker.url, manyTenants)
	pause := time.NewTicker(pickUpPause)

	defer pause.Stop()

	for number := range pickUps {
		if _, err := generator.Send(ctx, create(number)); err != nil {
			return nil, err
		}

		<-pause.C
	}

	if err := waitForRows(ctx, w.db, allSucceeded, pickUps); err != nil {
		return nil, err
	}

	var waits []time.Duration

	// time.Duration counts nanoseconds.
	if err := w.db.SelectContext(ctx, &waits, `SELECT (extract(epoch FROM min(began_at) - created_at) * 1e9)::bigint
		FROM operations JOIN timeline ON operation_id = id WHERE timeline.step <> '' GROUP BY id`); err != nil {
		return nil, fmt.Errorf("reading the timelines: %w", err)
	}

	return waits, nil
}
