package main

import (
	"context"
	"fmt"

	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/test/bench/prefill"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

// filled is an environment with many instances and a stopped broker.
type filled struct {
	env

	instances []prefill.Copy
}

// fill creates a database with count instances whose runtimes are ready or still being created. The broker creates one instance, which is
// copied.
func (s *scope) fill(ctx context.Context, count int, ready bool) (filled, error) {
	keys, err := secret.ParseKeyring(s.keys)
	if err != nil {
		return filled{}, fmt.Errorf("reading the keys: %w", err)
	}

	e, err := s.newEnv(ctx, simulated.Behaviour{Hold: !ready}, false)
	if err != nil {
		return filled{}, err
	}

	if _, err := s.once(ctx, creates(e.broker.url, 1)(0)); err != nil {
		return filled{}, err
	}

	condition := allRest
	if ready {
		condition = allSucceeded
	}

	if err := waitForRows(ctx, e.db, condition, 1); err != nil {
		return filled{}, err
	}

	if err := e.broker.Stop(); err != nil {
		return filled{}, err
	}

	instances, err := prefill.Multiply(ctx, e.db, keys, count)

	return filled{env: e, instances: instances}, err
}
