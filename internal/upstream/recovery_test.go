package upstream_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// resumeCounter implements Operations and counts calls to Resume and Wake.
type resumeCounter struct {
	resumed, woken atomic.Int64
}

func (h *resumeCounter) Resume(_ context.Context, component string, _ time.Time) (int64, error) {
	if component != "a garden" {
		return 0, nil
	}

	h.resumed.Add(1)

	return 7, nil
}

// recover runs a Recovery until the test ends.
func (b *fixture) recover() *resumeCounter {
	b.Helper()

	operations := &resumeCounter{}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)

	go func() {
		done <- upstream.Recovery{
			System: b.system, Operations: operations, Wake: func() { operations.woken.Add(1) }, Clock: clock.RealClock{},
			Log: logging.Discard(), Probe: func(ctx context.Context) error { return b.callIn(ctx) },
		}.Run(ctx)
	}()

	b.Cleanup(func() {
		cancel()

		if err := <-done; err != nil {
			b.Error(err)
		}
	})

	return operations
}

func TestRecoveryProbesAndResumes(t *testing.T) {
	onFakeTime(t, 1, func(b *fixture) {
		operations := b.recover()
		time.Sleep(time.Minute)

		if b.calls.Load() != 0 || operations.resumed.Load() != 0 {
			b.Error("a healthy system was probed")
		}

		b.open()

		made := b.calls.Load()

		time.Sleep(time.Minute)

		if trials := b.calls.Load() - made; trials < 15 || trials > 30 {
			b.Errorf("%d trials in a minute, want one every 2 to 4 s", trials)
		}

		b.respondWith(answers(http.StatusOK))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		b.state("a trial succeeded", upstream.Closed)

		if operations.resumed.Load() != 1 || operations.woken.Load() != 1 {
			b.Errorf("operations were resumed %d times and the engine woken %d times, want 1 and 1",
				operations.resumed.Load(), operations.woken.Load())
		}

		time.Sleep(time.Hour)

		if operations.resumed.Load() != 4 || operations.woken.Load() != 4 {
			b.Errorf("operations were resumed %d times, want 4", operations.resumed.Load())
		}
	})
}

func TestRecoveryAfterAHangingProbe(t *testing.T) {
	onFakeTime(t, 1, func(b *fixture) {
		b.recover()
		b.open()
		b.respondWith(hangs(time.Hour, down()))
		time.Sleep(time.Minute)

		b.respondWith(answers(http.StatusOK))
		time.Sleep(patience + pause + 2*time.Second)
		synctest.Wait()
		b.state("the hanging probe timed out", upstream.Closed)
	})
}

func TestFlappingSystemResumesOperationsOncePerMinute(t *testing.T) {
	onFakeTime(t, 1, func(b *fixture) {
		operations := b.recover()

		for range 8 {
			b.open()
			b.respondWith(answers(http.StatusOK))
			time.Sleep(6 * time.Second)
		}

		if resumed := operations.resumed.Load(); resumed < 1 || resumed > 4 {
			b.Errorf("operations were resumed %d times in 48 s, want at most as many times as after one outage", resumed)
		}

		time.Sleep(time.Minute)

		before := operations.resumed.Load()

		b.open()
		b.respondWith(answers(http.StatusOK))
		time.Sleep(time.Minute)

		if resumed := operations.resumed.Load() - before; resumed != 4 {
			b.Errorf("operations were resumed %d times after a separate outage, want 4", resumed)
		}
	})
}
