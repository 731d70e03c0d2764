package harness

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

const (
	// Patience limits every wait. It is long because tests share slow machines. Only a failing test waits this long.
	Patience = 4 * time.Minute
	// interval is the pause between two checks of a condition.
	interval = 50 * time.Millisecond
)

// Reporter is the part of [testing.TB] that reports failures. *rapid.T implements it too.
type Reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Until waits until the condition is true. After [Patience], it fails the test. The value of what describes the condition in the
// failure message.
func Until(r Reporter, what string, condition func() bool) {
	r.Helper()

	if !Within(Patience, condition) {
		r.Fatalf("waited %s for %s", Patience, what)
	}
}

// Within waits until the condition is true or the limit has passed, and reports whether the condition was true. It checks at
// least once.
func Within(limit time.Duration, condition func() bool) bool {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()

	for deadline := time.Now().Add(limit); time.Now().Before(deadline); <-ticker.C {
		if condition() {
			return true
		}
	}

	return condition()
}

// Run runs a service in a goroutine until stop is called or the test ends. stop cancels the service's context and waits until the
// service returns; an error of the service fails the test. Repeated calls to stop have no effect.
func Run(tb testing.TB, service func(context.Context) error) (stop func()) {
	tb.Helper()

	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	ended := make(chan error, 1)

	go func() { ended <- service(ctx) }()

	stop = sync.OnceFunc(func() {
		cancel()

		if err := <-ended; err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(stop)

	return stop
}

// Seed returns the seed for a random test and logs it. To repeat a run, set the environment variable TEST_SEED to its seed.
func Seed(tb testing.TB) uint64 {
	tb.Helper()

	seed := rand.Uint64()

	if text := os.Getenv("TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			tb.Fatalf("TEST_SEED: %v", err)
		}
	}

	tb.Logf("TEST_SEED=%d", seed)

	return seed
}

// SoakDuration returns how long a soak test repeats its rounds: the value of the environment variable SOAK_DURATION, or zero if the
// variable is not set.
func SoakDuration(tb testing.TB) time.Duration {
	tb.Helper()

	text := os.Getenv("SOAK_DURATION")
	if text == "" {
		return 0
	}

	duration, err := time.ParseDuration(text)
	if err != nil {
		tb.Fatalf("SOAK_DURATION: %v", err)
	}

	return duration
}
