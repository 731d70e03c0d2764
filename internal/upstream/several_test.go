package upstream_test

import (
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

// TestSeveralSystemsAreAwayAtTheSameTime has two of three systems away: each is told by its name, and comes back by itself.
func TestSeveralSystemsAreAwayAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		garden, shop, well := guarded(t, "garden", 1), guarded(t, "shop", 1), guarded(t, "well", 1)

		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(garden.guard, shop.guard, well.guard)

		told := func(states string) {
			t.Helper()

			const about = `
# HELP environment_broker_outside_breaker_state 0: closed, calls are made. 1: half-open, one call is made as a trial. 2: open, no call is made.
# TYPE environment_broker_outside_breaker_state gauge
`
			if err := testutil.GatherAndCompare(registry, strings.NewReader(about+states), "environment_broker_outside_breaker_state"); err != nil {
				t.Error(err)
			}
		}

		garden.open()
		shop.open()

		for name, away := range map[string]*bench{"garden": garden, "shop": shop} {
			known := failure.Of(away.call(time.Minute))
			if known.Component != "a "+name || !strings.HasPrefix(known.Text, "the "+name+" is not called for now: ") {
				t.Errorf("a call to the %s fails at %s: %s", name, known.Component, known.Text)
			}
		}

		if err := well.call(time.Minute); err != nil {
			t.Errorf("the system that is well is not called: %v", err)
		}

		told(`environment_broker_outside_breaker_state{system="garden"} 2
environment_broker_outside_breaker_state{system="shop"} 2
environment_broker_outside_breaker_state{system="well"} 0
`)

		time.Sleep(pause + time.Millisecond)
		shop.now(answers(http.StatusOK))

		if err := shop.call(time.Minute); err != nil {
			t.Error(err)
		}

		_ = garden.call(time.Minute)

		shop.state("its trial was answered", upstream.Closed)
		garden.state("its trial was not", upstream.Open)
		told(`environment_broker_outside_breaker_state{system="garden"} 2
environment_broker_outside_breaker_state{system="shop"} 0
environment_broker_outside_breaker_state{system="well"} 0
`)
	})
}
