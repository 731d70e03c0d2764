package lifecycle

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"
)

// Periodic is work that a service does at its start and then again and again. When it fails, that is told, and the next time comes
// as always.
type Periodic struct {
	Name  string
	Every time.Duration
	Work  func(ctx context.Context) error
	Clock clock.WithTicker
	Log   logrus.FieldLogger
}

// Part returns the part that does the work.
func (p Periodic) Part() Part { return Part{Name: p.Name, Run: p.run} }

func (p Periodic) run(ctx context.Context) error {
	ticker := p.Clock.NewTicker(p.Every)
	defer ticker.Stop()

	for {
		if err := p.Work(ctx); err != nil && ctx.Err() == nil {
			p.Log.WithError(err).Warnf("%s: failed, next time in %s", p.Name, p.Every)
		}

		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// Pause lets time pass between two pieces of work. It returns the context's error when that ends before.
func Pause(ctx context.Context, clock clock.Clock, pause time.Duration) error {
	timer := clock.NewTimer(pause)
	defer timer.Stop()

	select {
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // a pause has nothing to add
	case <-timer.C():
		return nil
	}
}
