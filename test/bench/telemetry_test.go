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
)

// scrapeInterval is the interval at which the metrics are read. Prometheus usually reads them every 15 or 30 seconds.
const scrapeInterval = time.Second

// measureTelemetry measures how much tracing of all requests and scrapes of the metrics slow down a broker that accepts creates. The collector
// discards the spans.
func measureTelemetry(s *scope) {
	var received atomic.Int64

	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		size, _ := io.Copy(io.Discard, r.Body)
		received.Add(size)
	}))
	s.Cleanup(collector.Close)

	plain := s.startPaused()
	tracing := []string{paused, "APP_TRACING_ENDPOINT=" + collector.URL}
	all, some := s.startBroker(plain, tracing...), s.startBroker(plain, append(tracing, "APP_TRACING_SAMPLE=0.1")...)

	s.rounds(func(s *scope) {
		for _, each := range []struct {
			broker *program
			share  string
			least  float64
		}{{all, "all", 80}, {some, "a tenth", 90}} {
			without := s.rate(creates(plain.broker.url, manyTenants))
			with := s.scraped(each.broker.status+"/metrics", func() load.Rate { return s.rate(creates(each.broker.url, manyTenants)) })

			name := "accepted creates/s, " + each.share + " traced, metrics read each second, compared to neither"
			s.add(report.Figure{Name: name, Unit: "%", AtLeast: each.least}, 100*with.PerSecond/without.PerSecond)
		}
	})

	if received.Load() == 0 {
		s.Error("the collector has received no spans")
	}
}

// scraped returns the rate of a load during which the metrics at the URL are read.
func (s *scope) scraped(url string, measure func() load.Rate) load.Rate {
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

	rate := measure()

	stop()
	s.check(group.Wait())
	generator.Close()

	return rate
}
