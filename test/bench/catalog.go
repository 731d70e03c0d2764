package main

import (
	"context"

	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/measure"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

const catalogShare = 0.8

// measureCatalog measures catalog requests. Their floor is a constant response of the same size.
func measureCatalog(ctx context.Context, s *scope) ([]line, error) {
	e, err := s.newEnv(ctx, simulated.Behaviour{}, true)
	if err != nil {
		return nil, err
	}

	request := gets(e.broker.url + "/v2/catalog")

	catalog, err := s.once(ctx, request(0))
	if err != nil {
		return nil, err
	}

	floor, err := s.startFloor(ctx, e.database, len(catalog.Body))
	if err != nil {
		return nil, err
	}

	rates, err := measure.InTurn(s.runs,
		s.rate(ctx, "floor", gets(floor.url+"/v2/catalog")),
		s.rate(ctx, "catalog", request),
	)
	if err != nil {
		return nil, err
	}

	return []line{besideFloor("catalog/s", perSecond(rates["catalog"]), perSecond(rates["floor"]), catalogShare)}, nil
}

// once sends one request.
func (s *scope) once(ctx context.Context, request load.Request) (load.Answer, error) {
	generator := load.New(1)
	defer generator.Close()

	return generator.Send(ctx, request)
}
