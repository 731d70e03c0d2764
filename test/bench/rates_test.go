package bench

import (
	"fmt"
	"net/http"

	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/prefill"
	"github.com/environment-broker/environment-broker/test/bench/report"
	"github.com/environment-broker/environment-broker/test/harness"
)

// measureAccept measures how many creates per second a broker without running operations accepts.
func measureAccept(s *scope) {
	quiet := s.startPaused()
	floor, strict := s.startFloor(quiet, 0), s.startFloor(quiet, 0, strictly)

	s.rounds(func(s *scope) {
		least := s.rate(creates(floor.url, manyTenants))
		minimum := s.rate(creates(strict.url, manyTenants))
		many := s.rate(creates(quiet.broker.url, manyTenants))
		one := s.rate(creates(quiet.broker.url, 1))

		name := "accepted creates/s, workers paused"
		s.addWithFloor(report.Figure{Name: name, FloorShare: 50}, many.PerSecond, least.PerSecond)
		s.addWithFloor(report.Figure{Name: name + ", strict floor", FloorShare: 50}, many.PerSecond, minimum.PerSecond)
		s.addWithFloor(report.Figure{Name: name + ": p99 of the response", Unit: "ms", AtMost: 25}, p99(many), p99(least))
		s.addWithFloor(report.Figure{Name: name + ", all of one tenant", FloorShare: 50}, one.PerSecond, least.PerSecond)
	})
}

// measureLastOperation measures polls of running operations, with few and with many operations in the database. Each server
// runs only while it is measured, because together they would exceed PostgreSQL's connection limit.
func measureLastOperation(s *scope) {
	type filled struct {
		*environment

		copies []prefill.Copy
	}

	sizes := []int{1_000, 10_000, 100_000}
	environments := make([]filled, 0, len(sizes))

	for _, size := range sizes {
		e, copies := s.fill(size, false)
		environments = append(environments, filled{e, copies})

		for _, statement := range []string{
			floorTables,
			`INSERT INTO floor_operations (id, instance_id, state, description, payload)
				SELECT id, instance_id, state, description, payload FROM operations`,
			`VACUUM ANALYZE`,
		} {
			_, err := e.db.ExecContext(s.Context(), statement)
			s.check(err)
		}
	}

	s.rounds(func(s *scope) {
		rates := make([]float64, 0, len(sizes))

		for i, e := range environments {
			var floor, strict, broker load.Rate

			s.within(func(s *scope) { floor = s.rate(lastOperations(s.startFloor(e.environment, 0).url, e.copies)) })
			s.within(func(s *scope) {
				strict = s.rate(lastOperations(s.startFloor(e.environment, 0, strictly).url, e.copies))
			})
			s.within(func(s *scope) { broker = s.rate(lastOperations(s.startBroker(e.environment, paused).url, e.copies)) })

			rates = append(rates, broker.PerSecond)
			name := fmt.Sprintf("last_operation/s at %d operations", sizes[i])
			s.addWithFloor(report.Figure{Name: name, FloorShare: 70}, broker.PerSecond, floor.PerSecond)
			s.addWithFloor(report.Figure{Name: name + ", strict floor", FloorShare: 70}, broker.PerSecond, strict.PerSecond)
		}

		s.add(report.Figure{Name: "last_operation/s at 100000 operations compared to 1000", Unit: "%", AtLeast: 85},
			100*rates[len(rates)-1]/rates[0])
	})
}

// lastOperations returns a function that creates polls of all instances' operations, in a scattered order.
func lastOperations(url string, instances []prefill.Copy) func(number int) load.Request {
	const stride = 7919 // a prime number, so that the loop reaches every instance

	header := header()

	return func(number int) load.Request {
		polled := instances[number*stride%len(instances)]

		return load.Request{
			Method: http.MethodGet, Header: header, Want: http.StatusOK,
			URL: url + harness.InstancePath(polled.Instance) + "/last_operation?operation=" + polled.Operation,
		}
	}
}

// measureCatalog measures catalog requests. The floor returns a constant response of the same size.
func measureCatalog(s *scope) {
	e := s.startPaused()
	generator := load.New(1)
	catalog := gets(e.broker.url + "/v2/catalog")
	floor := s.startFloor(e, len(s.fetch(generator, catalog(0)).Body))

	generator.Close()

	s.rounds(func(s *scope) {
		least := s.rate(gets(floor.url + "/v2/catalog"))
		s.addWithFloor(report.Figure{Name: "catalog/s", FloorShare: 80}, s.rate(catalog).PerSecond, least.PerSecond)
	})
}
