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
		inScope(s, "workers on", func(s *scope) (load.Rate, error) { return s.acceptWhileWorking(ctx) }),
	)
	if err != nil {
		return nil, err
	}

	floors, latency := perSecond(rates["floor"]), p99(rates["accept"])

	return []line{
		besideFloor("accepted creates/s, workers paused", perSecond(rates["accept"]), floors, acceptShare),
		{
			what: "the same: p99 of the answer", measured: inMilliseconds(latency), floor: inMilliseconds(p99(rates["floor"])),
			must: "< 25 ms", reached: verdict(latency < acceptLimit),
		},
		besideFloor("the same, all of one tenant", perSecond(rates["one tenant"]), floors, acceptShare),
		besideFloor("the same, workers on", perSecond(rates["workers on"]), floors, 0),
	}, nil
}

// acceptWhileWorking measures a separate broker, whose unfinished operations disturb no other figure.
func (s *scope) acceptWhileWorking(ctx context.Context) (load.Rate, error) {
	e, err := s.newEnv(ctx, simulated.Behaviour{}, false)
	if err != nil {
		return load.Rate{}, err
	}

	return s.rate(ctx, "workers on", creates(e.broker.url, manyTenants)).Run()
}
