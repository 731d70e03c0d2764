package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/measure"
	"github.com/environment-broker/environment-broker/test/bench/prefill"
)

const (
	lastOperationShare = 0.7
	// flatShare is the target share of the rate with a hundred times as many operations.
	flatShare = 0.85
)

// measureLastOperation measures polls of running operations, with few and with many operations in the database.
func measureLastOperation(ctx context.Context, s *scope) ([]line, error) {
	sizes := []int{1_000, 10_000, 100_000}
	subjects := make([]measure.Subject[load.Rate], 0, 2*len(sizes))

	for _, size := range sizes {
		filled, err := s.fill(ctx, size, false)
		if err != nil {
			return nil, err
		}

		if err := s.fillFloor(ctx, filled); err != nil {
			return nil, err
		}

		subjects = append(subjects,
			s.polls(ctx, floorOf(size), filled.instances, func(ctx context.Context, s *scope) (server, error) {
				return s.startFloor(ctx, filled.database, 0)
			}),
			s.polls(ctx, brokerOf(size), filled.instances, func(ctx context.Context, s *scope) (server, error) {
				filled.paused = true

				return s.startBroker(ctx, filled.env)
			}))
	}

	rates, err := measure.InTurn(s.runs, subjects...)
	if err != nil {
		return nil, err
	}

	var lines []line

	for _, size := range sizes {
		lines = append(lines, besideFloor(fmt.Sprintf("last_operation/s at %d operations", size),
			perSecond(rates[brokerOf(size)]), perSecond(rates[floorOf(size)]), lastOperationShare))
	}

	few, many := perSecond(rates[brokerOf(sizes[0])]), perSecond(rates[brokerOf(sizes[len(sizes)-1])])
	flat := measure.Median(measure.Ratios(many, few))

	return append(lines, target("the same at 100,000 beside 1,000", percent(flat), "≥ "+percent(flatShare), flat >= flatShare)), nil
}

func floorOf(size int) string  { return fmt.Sprintf("floor at %d", size) }
func brokerOf(size int) string { return fmt.Sprintf("last_operation at %d", size) }

// polls measures a server that runs during the measurement only: all servers at once would exceed PostgreSQL's connections.
func (s *scope) polls(ctx context.Context, name string, instances []prefill.Copy,
	start func(context.Context, *scope) (server, error),
) measure.Subject[load.Rate] {
	return inScope(s, name, func(s *scope) (load.Rate, error) {
		server, err := start(ctx, s)
		if err != nil {
			return load.Rate{}, err
		}

		return s.rate(ctx, name, lastOperations(server.url, instances)).Run()
	})
}

// lastOperations polls all operations in a scattered order.
func lastOperations(url string, instances []prefill.Copy) func(number int) load.Request {
	const stride = 7919 // a prime, so every instance is polled

	header := header()

	return func(number int) load.Request {
		polled := instances[number*stride%len(instances)]

		return load.Request{
			Method: http.MethodGet, Header: header, Want: http.StatusOK,
			URL: url + "/v2/service_instances/" + polled.Instance + "/last_operation?operation=" + polled.Operation,
		}
	}
}

// fillFloor copies the broker's operations into the floor's tables.
func (s *scope) fillFloor(ctx context.Context, filled filled) error {
	return s.scoped(func(s *scope) error {
		if _, err := s.startFloor(ctx, filled.database, 0); err != nil { // it creates its tables
			return err
		}

		for _, statement := range []string{
			`INSERT INTO floor_operations (id, instance_id, state, description, payload)
				SELECT id, instance_id, state, description, payload FROM operations`,
			`VACUUM ANALYZE`,
		} {
			if _, err := filled.db.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("filling the floor: %w", err)
			}
		}

		return nil
	})
}
