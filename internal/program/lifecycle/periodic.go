package lifecycle

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"
)

// Periodic is work that runs at the start of a service and then at an interval. Runs never overlap. An error is logged and does not change
// the interval. All fields are required.
type Periodic struct {
	// Name identifies the work in logs.
	Name string
	// Every is the time between the starts of two runs. A run that takes longer delays the next run.
	Every time.Duration
	Work  func(ctx context.Context) error
	Clock clock.WithTicker
	Log   logrus.FieldLogger
}

// Part returns a part that repeats the work until the context ends. Errors of the work do not end the part.
func (p Periodic) Part() Part { return Part{Name: p.Name, Run: p.run} }

func (p Periodic) run(ctx context.Context) error {
	ticker := p.Clock.NewTicker(p.Every)
	defer ticker.Stop()

	for {
		if err := p.Work(ctx); err != nil && ctx.Err() == nil {
			p.Log.WithError(err).Warnf("%s: failed, retrying in %s", p.Name, p.Every)
		}

		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// Pause waits for the given duration. If the context ends first, it returns the context's error.
func Pause(ctx context.Context, clock clock.Clock, pause time.Duration) error {
	timer := clock.NewTimer(pause)
	defer timer.Stop()

	select {
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the error needs no context
	case <-timer.C():
		return nil
	}
}

const (
	// shortestRest is the minimum time that Rest pauses.
	shortestRest = 20 * time.Millisecond
	// restShare is the factor by which Rest multiplies the time that the last page took.
	restShare = 9
)

// Rest pauses background work that reads a large table in pages. It waits for nine times as long as the last page took, and for at
// least 20 ms, so that the work uses one connection to the database for at most a tenth of the time. If the context ends first, it
// returns the context's error.
func Rest(ctx context.Context, clock clock.Clock, page time.Duration) error {
	return Pause(ctx, clock, max(shortestRest, restShare*page))
}
