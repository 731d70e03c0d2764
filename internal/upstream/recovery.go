package upstream

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"
)

const (
	// checkInterval is how often Recovery looks at the state of its system.
	checkInterval = time.Second
	// probeTimeout bounds a probe.
	probeTimeout = patience
	// After an outage operations are made due at once and then every resumeInterval for resumeFor: calls that were refused in its last
	// moment are stored a little after its end, and some fail under the load that follows.
	resumeInterval = 5 * time.Second
	resumeFor      = 15 * time.Second
	// resumePause is the shortest time between two outages that make operations due: a system that comes and goes must not have every
	// operation run each time.
	resumePause = time.Minute
)

// Recovery ends outages early. Operations that an outage holds up retry by themselves, but ever less often. Recovery probes the system in
// their place and makes them due when it answers again.
type Recovery struct {
	System *System
	// Probe makes a small call to the system, through its Transport.
	Probe func(ctx context.Context) error
	// Operations are those that may wait for the system.
	Operations Operations
	// Wake is called when operations have become due.
	Wake  func()
	Clock clock.WithTicker
	Log   logrus.FieldLogger
}

// Operations makes the operations due that wait for the component after a failure, on any replica, and returns their number.
type Operations interface {
	Resume(ctx context.Context, component string, now time.Time) (int64, error)
}

// Run watches the system until the context ends.
func (r Recovery) Run(ctx context.Context) error {
	ticker := r.Clock.NewTicker(checkInterval)
	defer ticker.Stop()

	var (
		over        int       // number of outages that have ended
		ended, next time.Time // end of the last outage that made operations due; when to do that again
	)

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}

		status, now := r.System.Status(), r.Clock.Now()

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
			next = now.Add(resumeInterval)

			r.resume(ctx, status)
		}
	}
}

func (r Recovery) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()

	// The circuit breaker judges the outcome: a rejection is an answer too.
	if err := r.Probe(ctx); err != nil {
		r.Log.WithError(err).Debugf("probing %s failed", r.System.options.Title)
	}
}

func (r Recovery) resume(ctx context.Context, status Status) {
	resumed, err := r.Operations.Resume(ctx, status.Component, r.Clock.Now())

	switch {
	case err != nil && ctx.Err() == nil:
		r.Log.WithError(err).Warn("resuming operations after an outage failed, they retry by themselves")
	case resumed > 0:
		r.Wake()
		r.Log.WithField("operations", resumed).Infof("%s answers again, operations resume", r.System.options.Title)
	}
}
