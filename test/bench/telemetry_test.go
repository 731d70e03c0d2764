package bench

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/environment-broker/environment-broker/test/bench/load"
	"github.com/environment-broker/environment-broker/test/bench/report"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

// scrapeInterval is the interval at which the metrics are scraped. Prometheus usually scrapes them every 15 or 30 seconds.
const scrapeInterval = time.Second

// observed is a broker whose requests are traced and whose metrics are read, or neither.
type observed struct {
	share  string
	least  float64
	sample string
}

// acceptance contains the rate of creates per second, and the broker's CPU time per create in milliseconds.
type acceptance struct{ rate, cpu float64 }

// measureTelemetry measures how much a broker that accepts creates is slowed down by tracing all requests and by scrapes of its
// metrics. The collector discards the spans.
//
// Each broker has a new database, because in a shared one, each broker would be slowed down by the instances of its predecessors.
// The order of the brokers changes from round to round, because each measurement is slowed down by the checkpoints of the one
// before it.
func measureTelemetry(s *scope) {
	var received atomic.Int64

	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		size, _ := io.Copy(io.Discard, r.Body)
		received.Add(size)
	}))
	s.Cleanup(collector.Close)

	arms := []observed{{}, {share: "all", least: 80, sample: "1"}, {share: "a tenth", least: 90, sample: "0.1"}}
	round := 0

	s.rounds(func(s *scope) {
		costs := make([]acceptance, len(arms))

		for _, index := range orderOf(round, len(arms)) {
			s.within(func(s *scope) { costs[index] = s.observe(arms[index], collector.URL) })
		}

		round++

		for index, each := range arms[1:] {
			name := "accepted creates/s, " + each.share + " traced, metrics read each second, compared to neither"
			s.add(report.Figure{Name: name, Unit: "%", AtLeast: each.least}, 100*costs[index+1].rate/costs[0].rate)
			s.add(report.Figure{Name: name + ": CPU time of the broker per create", Unit: "%"}, 100*costs[index+1].cpu/costs[0].cpu)
		}
	})

	if received.Load() == 0 {
		s.Error("the collector has received no spans")
	}
}

// orderOf returns the numbers below count in an order that depends on the round. Over the rounds, each number comes first, in the
// middle and last equally often.
func orderOf(round, count int) []int {
	order := make([]int, count)

	for i := range order {
		place := (i + round) % count
		if round/count%2 == 1 {
			place = count - 1 - place
		}

		order[i] = place
	}

	return order
}

// observe measures a broker with a new database. A first measurement, whose result is discarded, fills caches and query plans.
func (s *scope) observe(arm observed, collector string) (measured acceptance) {
	s.Helper()

	variables := []string{paused}
	if arm.sample != "" {
		variables = append(variables, "APP_TRACING_ENDPOINT="+collector, "APP_TRACING_SAMPLE="+arm.sample)
	}

	broker := s.startBroker(s.prepare(simulated.Behaviour{}), variables...)
	measure := func() {
		before := s.cpuOf(broker.command.Process.Pid)
		rate := s.rate(creates(broker.url, manyTenants))
		used := s.cpuOf(broker.command.Process.Pid) - before

		// The CPU time includes the warm-up.
		responses := float64(len(rate.Latencies)) * float64(warmUp+period) / float64(period)
		measured = acceptance{rate: rate.PerSecond, cpu: milliseconds(used) / responses}
	}

	measure()

	if arm.sample == "" {
		measure()
	} else {
		s.scraped(broker.status+"/metrics", measure)
	}

	return measured
}

// scraped calls measure, and meanwhile scrapes the metrics at url every scrapeInterval.
func (s *scope) scraped(url string, measure func()) {
	s.Helper()

	ctx, stop := context.WithCancel(s.Context())
	generator := load.New(1)

	var group errgroup.Group

	group.Go(func() error {
		ticker := time.NewTicker(scrapeInterval)
		defer ticker.Stop()

		for {
			if _, err := generator.Send(ctx, load.Request{Method: http.MethodGet, URL: url, Want: http.StatusOK}); err != nil && ctx.Err() == nil {
				return err
			}

			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
		}
	})

	measure()

	stop()
	s.check(group.Wait())
	generator.Close()
}
