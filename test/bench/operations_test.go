package bench

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"

	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/report"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

// measureThroughput measures finished operations per second with a Provisioner that responds immediately.
func measureThroughput(s *scope) {
	s.rounds(func(s *scope) {
		for _, size := range []int{1_000, 5_000} {
			s.within(func(s *scope) { s.finishAll(size) })
		}
	})
}

// finishAll creates size instances, waits until all are ready, and adds the cost per operation to the table.
func (s *scope) finishAll(size int) {
	e := s.start(simulated.Behaviour{})
	cost := e.costOf(size, creates(e.broker.url, manyTenants))
	calls := e.provisioner.Calls()
	name := fmt.Sprintf("%d creates, accepted to all done: ", size)

	s.add(report.Figure{Name: name + "operations/s", AtLeast: 300}, cost.rate)
	s.add(report.Figure{Name: name + "commits per operation", AtMost: 10}, cost.commits)
	s.add(report.Figure{Name: name + "CPU time of the broker per operation", Unit: "ms"}, cost.broker)
	s.add(report.Figure{Name: name + "CPU time of PostgreSQL per operation", Unit: "ms"}, cost.postgres)
	s.add(report.Figure{
		Name: name + "calls per operation",
		Note: fmt.Sprintf("in the last round: orders %d, states %d, kubeconfigs %d, runtimes %d, changes %d",
			calls.Orders, calls.Statuses, calls.Kubeconfigs, calls.Probes, calls.Feeds),
	}, float64(calls.All())/float64(size))
}

// cost contains the number of operations per second and, per operation, the number of commits and the CPU time of the broker and of
// PostgreSQL in milliseconds.
type cost struct{ rate, commits, broker, postgres float64 }

// costOf sends size requests for new instances, and waits until all are ready. The environment must have no other operations.
func (e *environment) costOf(size int, request func(number int) load.Request) cost {
	count := float64(size)
	commits, broker, postgres := e.commits(), e.cpuOf(e.broker.command.Process.Pid), e.cpuOf(e.postgres.ID())
	start := time.Now()

	e.send(size, request)
	ended := e.finish(size)

	return cost{
		rate:     count / ended.Sub(start).Seconds(),
		commits:  (e.commits() - commits) / count,
		broker:   milliseconds(e.cpuOf(e.broker.command.Process.Pid)-broker) / count,
		postgres: milliseconds(e.cpuOf(e.postgres.ID())-postgres) / count,
	}
}

// commits returns the number of writing transactions on the server so far. PostgreSQL assigns transaction IDs only to writing
// transactions.
func (e *environment) commits() (commits float64) {
	e.get(&commits, `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint`)

	return commits
}

// measurePickUp measures how long an operation waits for a worker of an idle broker. The measurement starts at the recorded time
// of acceptance, slightly before the commit. The instances are created one after the other, with pauses in which the broker
// becomes idle again.
func measurePickUp(s *scope) {
	const (
		count = 100
		pause = 30 * time.Millisecond
	)

	s.rounds(func(s *scope) {
		e := s.start(simulated.Behaviour{})
		create := creates(e.broker.url, manyTenants)

		generator := load.New(1)
		defer generator.Close()

		ticker := time.NewTicker(pause)
		defer ticker.Stop()

		for number := range count {
			s.fetch(generator, create(number))
			<-ticker.C
		}

		e.waitFor(allSucceeded, count)

		var waits []float64

		s.check(e.db.SelectContext(s.Context(), &waits, `SELECT extract(epoch FROM min(began_at) - created_at) * 1000
			FROM operations JOIN timeline ON operation_id = id WHERE timeline.step <> '' GROUP BY id`))
		s.add(report.Figure{Name: "pick-up, accepted to start of the first step: p50", Unit: "ms", AtMost: 10}, report.Median(waits))
	})
}

// measureSlowRuntimes creates more runtimes than there are workers. Each runtime takes a minute. One broker uses the feed, and a
// second one polls. Both run at the same time, because they mostly wait.
func measureSlowRuntimes(s *scope) {
	const count = 200

	type measured struct {
		*environment

		name  string
		start time.Time
	}

	environments := []measured{
		{environment: s.start(simulated.Behaviour{Takes: time.Minute}), name: "with the feed"},
		{environment: s.start(simulated.Behaviour{Takes: time.Minute, KymaProvisioner: true}), name: "polled"},
	}

	for i, e := range environments {
		environments[i].start = time.Now()
		e.create(count)
	}

	for _, e := range environments {
		s.add(report.Figure{
			Name: fmt.Sprintf("%d runtimes that take 60 s each, %s: all done (one run)", count, e.name), Unit: "s", AtMost: 66,
		}, e.finish(count).Sub(e.start).Seconds())
	}
}

// measureWaiting measures a broker with thousands of waiting operations, once with a feed and once without: the delay until the
// operations start, their cost while they wait, and the calls to the Provisioner.
func measureWaiting(s *scope) {
	s.within(func(s *scope) {
		name := "10000 waiting operations, with the feed (one run): "
		e := s.start(simulated.Behaviour{Hold: true})
		count := e.gather(name)
		e.watch(name, count)

		start := time.Now()
		e.provisioner.Release()

		ended := e.finish(count)
		calls := e.provisioner.Calls()

		s.add(report.Figure{Name: name + "calls per change", AtMost: 2}, float64(calls.Statuses)/float64(calls.Changes))
		s.add(report.Figure{Name: name + "all done after all were ready at once", Unit: "s"}, ended.Sub(start).Seconds())
	})

	s.within(func(s *scope) {
		name := "10000 waiting operations, polled (one run): "
		e := s.start(simulated.Behaviour{Hold: true, KymaProvisioner: true})
		e.watch(name, e.gather(name))
	})
}

// gather creates operations, waits until all their runtimes are ordered, and returns the number of operations. The first operations
// fill caches and pools, so the memory per operation is computed from the growth during the rest.
func (e *environment) gather(name string) int {
	const (
		few  = 1_000
		rest = 9_000
		// settle is the pause before a memory measurement.
		settle = 5 * time.Second
	)

	longest := e.order(few)
	time.Sleep(settle)

	before, _ := e.broker.memory()
	longest = max(longest, e.order(rest))
	time.Sleep(settle)

	after, peak := e.broker.memory()

	e.add(report.Figure{Name: name + "started after acceptance, the last", Unit: "s", AtMost: 60}, longest.Seconds())
	e.add(report.Figure{Name: name + "resident memory at its peak", Unit: "MiB", AtMost: 90}, peak/mebibyte)
	e.add(report.Figure{Name: name + "memory per operation", Unit: "bytes", AtMost: 1000}, (after-before)/rest)

	return few + rest
}

// order creates instances, waits until all their runtimes are ordered, and returns the longest time from the acceptance of an
// instance to the order of its runtime.
func (e *environment) order(count int) (longest time.Duration) {
	ordered := e.provisioner.Calls().Orders + count
	responses := e.create(count)

	e.until("all orders", func() bool { return e.provisioner.Calls().Orders >= ordered })

	arrivals := e.provisioner.Ordered()

	for _, response := range responses {
		var accepted apiresponses.ProvisioningResponse

		e.check(json.Unmarshal(response.Body, &accepted))

		arrival, found := arrivals[accepted.OperationData]
		if !found {
			e.Fatalf("operation %s has not ordered a runtime", accepted.OperationData)
		}

		longest = max(longest, arrival.Sub(response.At))
	}

	return longest
}

// watch measures the broker's polls, commits and CPU time while the operations wait. Without a feed, the broker polls each operation about
// every 20 s.
func (e *environment) watch(name string, count int) {
	const duration = 20 * time.Second

	statuses, commits := e.provisioner.Calls().Statuses, e.commits()
	broker, postgres := e.cpuOf(e.broker.command.Process.Pid), e.cpuOf(e.postgres.ID())

	time.Sleep(duration)

	statuses, commits = e.provisioner.Calls().Statuses-statuses, e.commits()-commits
	broker, postgres = e.cpuOf(e.broker.command.Process.Pid)-broker, e.cpuOf(e.postgres.ID())-postgres

	e.add(report.Figure{Name: name + "calls per operation in 20 s", AtMost: 1}, float64(statuses)/float64(count))
	e.add(report.Figure{Name: name + "commits/s meanwhile"}, commits/duration.Seconds())

	hours := float64(count) * duration.Hours()
	e.add(report.Figure{Name: name + "CPU time of the broker per operation and hour", Unit: "ms"}, milliseconds(broker)/hours)
	e.add(report.Figure{Name: name + "CPU time of PostgreSQL per operation and hour", Unit: "ms"}, milliseconds(postgres)/hours)
}

// measurePolling measures a broker whose Provisioner has no feed, with operations of one tenant and of many tenants. It measures
// the rate of status requests while all operations wait, and the time until all operations have ended if the runtimes are ready
// immediately.
func measurePolling(s *scope) {
	const (
		count    = 1_000
		duration = 10 * time.Second
	)

	for _, row := range []struct {
		title   string
		tenants int
		// limit is the maximum number of requests per second. With many tenants, it is the default of APP_PROVISIONER_POLL_LIMIT.
		limit float64
	}{{"one tenant", 1, 20}, {"100 tenants", manyTenants, 50}} {
		name := fmt.Sprintf("%d operations of %s, polled (one run): ", count, row.title)

		s.within(func(s *scope) {
			e := s.start(simulated.Behaviour{Hold: true, KymaProvisioner: true})
			e.createFor(row.tenants, count)
			e.waitFor(allWait, count)

			before, commits, start := e.provisioner.Calls(), e.commits(), time.Now()

			time.Sleep(duration)

			after, seconds := e.provisioner.Calls(), time.Since(start).Seconds()
			requests, polled := float64(after.Statuses-before.Statuses), float64(after.Polled-before.Polled)

			s.add(report.Figure{Name: name + "requests/s while all wait", AtMost: row.limit}, requests/seconds)
			s.add(report.Figure{Name: name + "operations per request"}, polled/requests)
			s.add(report.Figure{Name: name + "interval between polls of an operation", Unit: "s"}, seconds*count/polled)
			s.add(report.Figure{Name: name + "commits/s meanwhile"}, (e.commits()-commits)/seconds)
		})

		s.within(func(s *scope) {
			e := s.start(simulated.Behaviour{KymaProvisioner: true})
			start := time.Now()

			e.createFor(row.tenants, count)
			s.add(report.Figure{Name: name + "all done, runtimes ready at once", Unit: "s", AtMost: 10}, e.finish(count).Sub(start).Seconds())
		})
	}
}

// measureKilled kills a broker with SIGKILL, restarts it, and measures when its operations resume and when all of them have
// ended. Most operations wait for their runtimes, which become ready while the broker is down. The other operations, as many as
// APP_PROVISIONER_CALLS allows, wait for the response to their order.
func measureKilled(s *scope) {
	const (
		waiting  = 968
		ordering = 32
		all      = waiting + ordering
	)

	kill := func(s *scope, how string, kyma bool) {
		e := s.start(simulated.Behaviour{Hold: true, AnswerUntil: waiting, KymaProvisioner: kyma})
		e.create(waiting)
		e.waitFor(allWait, waiting)
		e.create(ordering)
		e.until("the last orders", func() bool { return e.provisioner.Calls().Orders >= all })

		killed := time.Now()

		e.broker.kill()
		e.provisioner.Release()
		e.broker = s.startBroker(e)

		ended := e.finish(all)

		var moved time.Time

		e.get(&moved, `SELECT min(ended_at) FROM timeline WHERE began_at > $1`, killed)

		name := fmt.Sprintf("SIGKILL with %d in flight, restart at once, %s: ", all, how)
		s.add(report.Figure{Name: name + "first moved", Unit: "s", AtMost: 10}, moved.Sub(killed).Seconds())
		s.add(report.Figure{Name: name + "all done", Unit: "s", AtMost: 10}, ended.Sub(killed).Seconds())
	}

	s.rounds(func(s *scope) {
		s.within(func(s *scope) { kill(s, "with the feed", false) })
		s.within(func(s *scope) { kill(s, "polled", true) })
	})
}
