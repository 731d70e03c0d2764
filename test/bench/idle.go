package main

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/test/bench/program"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

const (
	idleFor         = 10 * time.Second
	idleMemoryLimit = 60 * program.MiB
)

// measureIdle measures the memory of an idle broker.
func measureIdle(ctx context.Context, s *scope) ([]line, error) {
	e, err := s.newEnv(ctx, simulated.Behaviour{}, false)
	if err != nil {
		return nil, err
	}

	memory, err := e.rest(ctx, idleFor)
	if err != nil {
		return nil, err
	}

	return []line{
		target("idle broker: resident memory (one run)", mebibytes(memory.Resident), "< 60 MiB", memory.Resident < idleMemoryLimit),
	}, nil
}

// rest leaves the broker alone for a while and returns its memory afterwards.
func (e env) rest(ctx context.Context, while time.Duration) (program.Memory, error) {
	select {
	case <-ctx.Done():
		return program.Memory{}, ctx.Err()
	case <-time.After(while):
	}

	return e.broker.Memory()
}
