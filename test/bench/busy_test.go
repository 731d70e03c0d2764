package bench

import (
	"time"

	"github.com/environment-broker/environment-broker/test/bench/prefill"
	"github.com/environment-broker/environment-broker/test/bench/report"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

// backlog is the number of operations that wait for a worker in measureBusy. It is so large that the workers do not finish them all
// during the measurement.
const backlog = 5_000

// measureBusy measures how requests and operations share a replica. A broker without workers, and one that has operations for
// all its workers, receive the same requests, on the same database. The operations are also measured without requests.
func measureBusy(s *scope) {
	s.rounds(func(s *scope) {
		e := s.prepare(simulated.Behaviour{})

		var idle, busy shares

		s.within(func(s *scope) {
			e.broker = s.startBroker(e, paused)
			e.create(backlog)
			idle = e.share()
		})
		s.within(func(s *scope) {
			e.broker = s.startBroker(e)
			alone := e.succeeding(func() { time.Sleep(period) })
			busy = e.share()

			s.add(report.Figure{Name: "accepted creates/s, workers on, compared to workers paused", Unit: "%", AtLeast: 65},
				100*busy.creates/idle.creates)
			s.add(report.Figure{Name: "last_operation/s, workers on, compared to workers paused", Unit: "%", AtLeast: 65},
				100*busy.polls/idle.polls)
			s.add(report.Figure{Name: "operations/s that succeed, without requests"}, alone)
			s.add(report.Figure{Name: "operations/s that succeed during creates, compared to no requests", Unit: "%", AtLeast: 20},
				100*busy.duringCreates/alone)
			s.add(report.Figure{Name: "operations/s that succeed during last_operation, compared to no requests", Unit: "%", AtLeast: 20},
				100*busy.duringPolls/alone)
		})
	})
}

// shares contains rates per second: of creates, of polls, and of the operations that succeed during each of them.
type shares struct{ creates, polls, duringCreates, duringPolls float64 }

// share measures the rates during creates, and then during polls.
func (e *environment) share() (measured shares) {
	var accepted []prefill.Copy

	e.check(e.db.SelectContext(e.Context(), &accepted,
		`SELECT instance_id AS instance, id AS operation FROM operations WHERE state IN ('pending', 'in progress')`))

	measured.duringCreates = e.succeeding(func() { measured.creates = e.rate(creates(e.broker.url, manyTenants)).PerSecond })
	measured.duringPolls = e.succeeding(func() { measured.polls = e.rate(lastOperations(e.broker.url, accepted)).PerSecond })

	return measured
}

// succeeding calls during, which sends the load, and returns how many operations per second succeed meanwhile.
func (e *environment) succeeding(during func()) float64 {
	const query = `SELECT count(*) FROM operations WHERE state = 'succeeded'`

	var before, after float64

	e.get(&before, query)

	start := time.Now()

	during()

	took := time.Since(start)

	e.get(&after, query)

	return (after - before) / took.Seconds()
}
