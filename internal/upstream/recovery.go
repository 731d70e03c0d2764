package upstream

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"
)

const (
	// look is how often a guard is looked at.
	look = time.Second
	// probeTimeout bounds a trial that is made for its own sake.
	probeTimeout = patience
	// After an outage operations are made due at once and then every resumeAgain for resumeFor: calls that were refused in its last
	// moment are stored a little later than it ended, and some fail in the crowd that follows.
	resumeAgain = 5 * time.Second
	resumeFor   = 15 * time.Second
	// resumePause keeps a system that comes and goes from having every operation run each time.
	resumePause = time.Minute
)

// Recovery ends outages early. Operations that an outage held up try again by themselves, the longer it lasted the later: they need
// not find out that it is over, and need not wait once it is.
type Recovery struct {
	Guard *Guard
	// Probe makes a small call to the system, through the guard.
	Probe func(ctx context.Context) error
	// Operations are those that the system may hold up.
	Operations Operations
	// Wake is called when operations have become due.
	Wake  func()
	Clock clock.WithTicker
	Log   logrus.FieldLogger
}

// Operations makes those due that a problem of the component holds up, on whichever replica they met it, and tells how many.
type Operations interface {
	Resume(ctx context.Context, component string, now time.Time) (int64, error)
}

// Run looks after the guard until the context ends.
func (r Recovery) Run(ctx context.Context) error {
	ticker := r.Clock.NewTicker(look)
	defer ticker.Stop()

	var (
		over        int       // outages that are over
		ended, next time.Time // when the last one was, of those after which operations are made due; when they are again
	)

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}

		status, now := r.Guard.Status(), r.Clock.Now()

		if status.State == HalfOpen && !status.trialUnderWay {
			r.probe(ctx)
		}

		if status.State != Closed {
			continue
		}

		if status.Outages > over && now.Sub(ended) >= resumePause {
			ended, next = now, now
		}

		over = status.Outages

		if !now.Before(next) && now.Sub(ended) <= resumeFor {
			next = now.Add(resumeAgain)

			r.resume(ctx, status)
		}
	}
}

func (r Recovery) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()

	// What came of it is the guard's to judge: an answer that refuses is one too.
	if err := r.Probe(ctx); err != nil {
		r.Log.WithError(err).Debugf("a trial of %s", r.Guard.options.Title)
	}
}

func (r Recovery) resume(ctx context.Context, status Status) {
	resumed, err := r.Operations.Resume(ctx, status.Component, r.Clock.Now())

	switch {
	case err != nil && ctx.Err() == nil:
		r.Log.WithError(err).Warn("operations could not be told that an outage is over, they try again by themselves")
	case resumed > 0:
		r.Wake()
		r.Log.WithField("operations", resumed).Infof("%s answers again, operations go on", r.Guard.options.Title)
	}
}
