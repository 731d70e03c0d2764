package main

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/measure"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

const (
	acceptShare = 0.5
	acceptLimit = 25 * time.Millisecond
)

// measureAccept measures how many creates a second are accepted: by a broker that does nothing else, and by one that works on them.
func measureAccept(ctx context.Context, s *scope) ([]line, error) {
	paused, err := s.newEnv(ctx, simulated.Behaviour{}, true)
	if err != nil {
		return nil, err
	}

	floor, err := s.startFloor(ctx, paused.database, 0)
	if err != nil {
		return nil, err
	}

	rates, err := measure.InTurn(s.runs,
		s.rate(ctx, "floor", creates(floor.url, manyTenants)),
		s.rate(ctx, "accept", creates(paused.broker.url, manyTenants)),
		s.rate(ctx, "one tenant", creates(paused.broker.url, 1)),
		measure.Subject[load.Rate]{Name: "workers on", Run: func() (load.Rate, error) { return s.acceptWhileWorking(ctx) }},
	)
	if err != nil {
		return nil, err
	}

	floors, p99 := perSecond(rates["floor"]), percentiles(rates["accept"], 0.99)

	return []line{
		besideFloor("accepted creates/s, workers paused", perSecond(rates["accept"]), floors, acceptShare),
		{
			what: "the same: p99 of the answer", measured: inMilliseconds(p99),
			floor: inMilliseconds(percentiles(rates["floor"], 0.99)),
			must:  "< 25 ms", reached: verdict(measure.Median(p99) < acceptLimit),
		},
		besideFloor("the same, all of one tenant", perSecond(rates["one tenant"]), floors, acceptShare),
		besideFloor("the same, workers on", perSecond(rates["workers on"]), floors, 0),
	}, nil
}

// acceptWhileWorking measures a broker of its own, whose unfinished operations disturb no other figure.
func (s *scope) acceptWhileWorking(ctx context.Context) (rate load.Rate, err error) {
	err = s.scoped(func(s *scope) error {
		w, err := s.newEnv(ctx, simulated.Behaviour{}, false)
		if err != nil {
			return err
		}

		rate, err = s.rate(ctx, "workers on", creates(w.broker.url, manyTenants)).Run()

		return err
	})

	return rate, err
}
