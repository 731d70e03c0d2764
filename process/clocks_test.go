package process_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
)

// skewedClock is the real clock with a constant offset.
type skewedClock struct {
	clock.RealClock

	by time.Duration
}

func (c skewedClock) Now() time.Time { return c.RealClock.Now().Add(c.by) }

func (c skewedClock) Since(moment time.Time) time.Duration { return c.Now().Sub(moment) }

// TestClocksMayDiffer runs two replicas, one of them with a clock that is off by two seconds. Neither may take over operations
// from the other.
func TestClocksMayDiffer(t *testing.T) {
	for _, by := range []time.Duration{-2 * time.Second, 2 * time.Second} {
		t.Run(by.String(), func(t *testing.T) {
			inBubble(t, func(b *fixture) {
				long := &step{name: "Long", work: func(_ context.Context, o operation) (operation, time.Duration, error) {
					time.Sleep(15 * time.Second)

					return o, 0, nil
				}}
				poll := scripted("Poll", func(run int) (time.Duration, error) {
					if run%4 > 0 {
						return 10 * time.Second, nil
					}

					return 0, nil
				})

				for _, clock := range []clock.WithTicker{clock.RealClock{}, skewedClock{by: by}} {
					config := process.DefaultConfig()
					config.Workers = 1 // so that both replicas get work

					engine, err := process.NewEngine(b.store, config, clock, logging.Discard(), process.Process[data]{
						Kind: "test", Limit: limit, Stages: []process.Stage[data]{stage("long", long), stage("poll", poll), stage("end", succeeding("End"))},
					})
					if err != nil {
						b.Fatal(err)
					}

					b.start(engine)
				}

				for _, id := range []string{"one", "two", "three"} {
					b.accept(id, id)
				}

				for _, id := range []string{"one", "two", "three"} {
					record := b.await(id)
					if record.State != process.Succeeded {
						b.Errorf("%s ended as %s: %+v", id, record.State, record.Problem)
					}

					for _, entry := range b.timeline(id) {
						if entry.Outcome == process.TakenOver {
							b.Errorf("%s was taken over although its replica was running: %v", id, b.history(id))
						}
					}
				}

				if long.runs() != 3 {
					b.Errorf("the long step of three operations ran %d times", long.runs())
				}
			})
		})
	}
}
