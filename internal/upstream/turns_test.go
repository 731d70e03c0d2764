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
)

func TestOnlySoManyCallsAtTheSameTime(t *testing.T) {
	inBubble(t, 2, func(b *bench) {
		b.now(hangs(4*time.Second, answers(http.StatusOK)))

		ended := make(chan error, 6)
		for range cap(ended) {
			go func() { ended <- b.call(time.Minute) }()
		}

		synctest.Wait()

		if status := b.guard.Status(); status.InFlight != 2 || b.calls.Load() != 2 {
			b.Errorf("%d calls were made, %d are told to be under way, want 2", b.calls.Load(), status.InFlight)
		}

		var served, refused int

		for range cap(ended) {
			if err := <-ended; err == nil {
				served++
			} else if known := failure.Of(err); known.Kind == failure.Transient && known.Reason == failure.ReasonBusy &&
				strings.Contains(known.Text, "2 calls to the garden") && strings.Contains(known.Text, "APP_GARDEN_CALLS") {
				refused++
			}
		}

		if served != 4 || refused != 2 {
			b.Errorf("%d were served and %d refused, want the first two, the two behind them, and two refused after %s",
				served, refused, longestWait)
		}

		if b.guard.Status().InFlight != 0 {
			b.Error("turns were not given back")
		}
	})
}

func TestTurnLastsUntilTheAnswerIsClosed(t *testing.T) {
	inBubble(t, 1, func(b *bench) {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://garden", http.NoBody)
		if err != nil {
			b.Fatal(err)
		}

		response, err := b.client.Do(request)
		if err != nil || b.guard.Status().InFlight != 1 {
			b.Fatalf("%v, %d calls under way while an answer is read, want 1", err, b.guard.Status().InFlight)
		}

		for range 2 {
			if err := response.Body.Close(); err != nil {
				b.Error(err)
			}
		}

		if left := b.guard.Status().InFlight; left != 0 {
			b.Errorf("%d calls under way after the answer was closed twice", left)
		}
	})
}

func TestCallerThatLeavesGetsNoTurn(t *testing.T) {
	inBubble(t, 1, func(b *bench) {
		b.now(hangs(time.Minute, answers(http.StatusOK)))

		go func() { _ = b.call(time.Hour) }()

		synctest.Wait()

		ctx, cancel := context.WithCancel(b.Context())
		time.AfterFunc(time.Second, cancel)

		if err := b.callIn(ctx); !errors.Is(err, context.Canceled) {
			b.Errorf("a caller that leaves reads %v", err)
		}

		if err := b.call(time.Second); failure.Of(err).Reason != failure.ReasonBusy {
			b.Errorf("a caller without time reads %v", err)
		}

		time.Sleep(time.Hour)
		synctest.Wait()

		if b.calls.Load() != 1 {
			b.Errorf("%d calls were made, want 1", b.calls.Load())
		}
	})
}

func TestMetricsOfASystem(t *testing.T) {
	inBubble(t, 2, func(b *bench) {
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(b.guard)

		_ = b.call(time.Minute)
		b.open()
		_ = b.call(time.Minute)

		const want = `
# HELP environment_broker_outside_breaker_state 0: closed, calls are made. 1: half-open, one call is made as a trial. 2: open, no call is made.
# TYPE environment_broker_outside_breaker_state gauge
environment_broker_outside_breaker_state{system="garden"} 2
# HELP environment_broker_outside_calls_in_flight Calls under way.
# TYPE environment_broker_outside_calls_in_flight gauge
environment_broker_outside_calls_in_flight{system="garden"} 0
# HELP environment_broker_outside_calls_limit How many calls may be under way at the same time.
# TYPE environment_broker_outside_calls_limit gauge
environment_broker_outside_calls_limit{system="garden"} 2
# HELP environment_broker_outside_calls_total Calls that were made, by outcome: answered, server_error (HTTP 5xx), timed_out, unreachable, canceled (by us).
# TYPE environment_broker_outside_calls_total counter
environment_broker_outside_calls_total{outcome="answered",system="garden"} 1
environment_broker_outside_calls_total{outcome="canceled",system="garden"} 0
environment_broker_outside_calls_total{outcome="server_error",system="garden"} 0
environment_broker_outside_calls_total{outcome="timed_out",system="garden"} 0
environment_broker_outside_calls_total{outcome="unreachable",system="garden"} 5
# HELP environment_broker_outside_refused_total Calls that were not made, by reason: no_turn (too many at the same time), breaker_open.
# TYPE environment_broker_outside_refused_total counter
environment_broker_outside_refused_total{reason="breaker_open",system="garden"} 1
environment_broker_outside_refused_total{reason="no_turn",system="garden"} 0
`

		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "environment_broker_outside_breaker_state",
			"environment_broker_outside_calls_in_flight", "environment_broker_outside_calls_limit",
			"environment_broker_outside_calls_total", "environment_broker_outside_refused_total"); err != nil {
			b.Error(err)
		}

		if count := testutil.CollectAndCount(b.guard, "environment_broker_outside_call_duration_seconds"); count != 1 {
			b.Errorf("%d histograms of durations", count)
		}
	})
}
