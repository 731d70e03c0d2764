package upstream_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

func TestConcurrencyLimit(t *testing.T) {
	onFakeTime(t, 2, func(b *fixture) {
		b.respondWith(hangs(4*time.Second, answers(http.StatusOK)))

		ended := make(chan error, 6)
		for range cap(ended) {
			go func() { ended <- b.call(time.Minute) }()
		}

		synctest.Wait()

		if status := b.system.Status(); status.InFlight != 2 || b.calls.Load() != 2 {
			b.Errorf("%d calls were made and the status reports %d in flight, want 2", b.calls.Load(), status.InFlight)
		}

		var served, refused int

		for range cap(ended) {
			if err := <-ended; err == nil {
				served++
			} else if ferr := failure.Of(err); ferr.Kind == failure.Transient && ferr.Reason == failure.ReasonBusy &&
				strings.Contains(ferr.Text, "2 concurrent calls to the garden") && strings.Contains(ferr.Text, "APP_GARDEN_CALLS") {
				refused++
			}
		}

		if served != 4 || refused != 2 {
			b.Errorf("%d calls succeeded and %d were refused, want 4 and 2: two run, two wait, two time out after %s",
				served, refused, slotTimeout)
		}

		if b.system.Status().InFlight != 0 {
			b.Error("slots were not freed")
		}
	})
}

// TestFixedConcurrencyLimit checks the error of a System whose limit no variable sets.
func TestFixedConcurrencyLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFixtureWith(t, upstream.Options{Name: "garden", Title: "the garden", Component: "a garden", Calls: 1})
		b.respondWith(hangs(time.Minute, answers(http.StatusOK)))

		first := make(chan error, 1)
		go func() { first <- b.call(2 * time.Minute) }()

		synctest.Wait()

		const want = "the limit of 1 concurrent calls to the garden has been reached, and no call ended in time"
		if text := failure.Of(b.call(time.Minute)).Text; text != want {
			t.Errorf("got %q, want %q", text, want)
		}

		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}

func TestSlotIsHeldUntilTheBodyIsClosed(t *testing.T) {
	onFakeTime(t, 1, func(b *fixture) {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://garden", http.NoBody)
		if err != nil {
			b.Fatal(err)
		}

		response, err := b.client.Do(request)
		if err != nil || b.system.Status().InFlight != 1 {
			b.Fatalf("%v, %d calls in flight while the body is open, want 1", err, b.system.Status().InFlight)
		}

		for range 2 {
			if err := response.Body.Close(); err != nil {
				b.Error(err)
			}
		}

		if left := b.system.Status().InFlight; left != 0 {
			b.Errorf("%d calls in flight after closing the body twice", left)
		}
	})
}

func TestCallerGivesUpWhileWaiting(t *testing.T) {
	onFakeTime(t, 1, func(b *fixture) {
		b.respondWith(hangs(time.Minute, answers(http.StatusOK)))

		go func() { _ = b.call(time.Hour) }()

		synctest.Wait()

		ctx, cancel := context.WithCancel(b.Context())
		time.AfterFunc(time.Second, cancel)

		if err := b.callIn(ctx); !errors.Is(err, context.Canceled) {
			b.Errorf("the error of a canceled caller is %v", err)
		}

		if err := b.call(time.Second); failure.Of(err).Reason != failure.ReasonBusy {
			b.Errorf("the error after the caller's deadline is %v", err)
		}

		time.Sleep(time.Hour)
		synctest.Wait()

		if b.calls.Load() != 1 {
			b.Errorf("%d calls were made, want 1", b.calls.Load())
		}
	})
}

func TestMetrics(t *testing.T) {
	onFakeTime(t, 2, func(b *fixture) {
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(b.system)

		_ = b.call(time.Minute)
		b.open()
		_ = b.call(time.Minute)

		const want = `
# HELP environment_broker_upstream_breaker_state State of the circuit breaker. 0: closed, calls are made. 1: half-open, one call is made as a trial. 2: open, no call is made.
# TYPE environment_broker_upstream_breaker_state gauge
environment_broker_upstream_breaker_state{system="garden"} 2
# HELP environment_broker_upstream_calls_in_flight Calls in flight.
# TYPE environment_broker_upstream_calls_in_flight gauge
environment_broker_upstream_calls_in_flight{system="garden"} 0
# HELP environment_broker_upstream_calls_limit Maximum number of concurrent calls.
# TYPE environment_broker_upstream_calls_limit gauge
environment_broker_upstream_calls_limit{system="garden"} 2
# HELP environment_broker_upstream_calls_total Calls made, by outcome: answered, server_error (HTTP 5xx), timed_out, unreachable, canceled (by the caller).
# TYPE environment_broker_upstream_calls_total counter
environment_broker_upstream_calls_total{outcome="answered",system="garden"} 1
environment_broker_upstream_calls_total{outcome="canceled",system="garden"} 0
environment_broker_upstream_calls_total{outcome="server_error",system="garden"} 0
environment_broker_upstream_calls_total{outcome="timed_out",system="garden"} 0
environment_broker_upstream_calls_total{outcome="unreachable",system="garden"} 5
# HELP environment_broker_upstream_refused_total Calls not made, by reason: limit (too many at the same time), breaker_open.
# TYPE environment_broker_upstream_refused_total counter
environment_broker_upstream_refused_total{reason="breaker_open",system="garden"} 1
environment_broker_upstream_refused_total{reason="limit",system="garden"} 0
`

		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "environment_broker_upstream_breaker_state",
			"environment_broker_upstream_calls_in_flight", "environment_broker_upstream_calls_limit",
			"environment_broker_upstream_calls_total", "environment_broker_upstream_refused_total"); err != nil {
			b.Error(err)
		}

		if count := testutil.CollectAndCount(b.system, "environment_broker_upstream_call_duration_seconds"); count != 1 {
			b.Errorf("%d histograms of durations, want 1", count)
		}
	})
}

// TestSystemsFailIndependently checks that the outages of two systems do not affect a third one.
func TestSystemsFailIndependently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		garden, director, releases := newFixture(t, "garden", 1), newFixture(t, "director", 1), newFixture(t, "releases", 1)

		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(garden.system, director.system, releases.system)

		expect := func(states string) {
			t.Helper()

			const help = `
# HELP environment_broker_upstream_breaker_state State of the circuit breaker. 0: closed, calls are made. 1: half-open, one call is made as a trial. 2: open, no call is made.
# TYPE environment_broker_upstream_breaker_state gauge
`
			if err := testutil.GatherAndCompare(registry, strings.NewReader(help+states), "environment_broker_upstream_breaker_state"); err != nil {
				t.Error(err)
			}
		}

		garden.open()
		director.open()

		for name, failing := range map[string]*fixture{"garden": garden, "director": director} {
			ferr := failure.Of(failing.call(time.Minute))
			if ferr.Component != "a "+name || !strings.HasPrefix(ferr.Text, "the "+name+" is unavailable: ") {
				t.Errorf("a call to the %s fails with component %s: %s", name, ferr.Component, ferr.Text)
			}
		}

		if err := releases.call(time.Minute); err != nil {
			t.Errorf("a call to the healthy system fails: %v", err)
		}

		expect(`environment_broker_upstream_breaker_state{system="director"} 2
environment_broker_upstream_breaker_state{system="garden"} 2
environment_broker_upstream_breaker_state{system="releases"} 0
`)

		time.Sleep(pause + time.Millisecond)
		director.respondWith(answers(http.StatusOK))

		if err := director.call(time.Minute); err != nil {
			t.Error(err)
		}

		_ = garden.call(time.Minute)

		director.state("the trial succeeded", upstream.Closed)
		garden.state("the trial failed", upstream.Open)
		expect(`environment_broker_upstream_breaker_state{system="director"} 0
environment_broker_upstream_breaker_state{system="garden"} 2
environment_broker_upstream_breaker_state{system="releases"} 0
`)
	})
}
