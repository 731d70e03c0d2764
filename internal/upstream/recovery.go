package upstream

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"
)

const (
	// checkInterval is the interval at which Recovery checks the state of its System.
	checkInterval = time.Second
	// probeTimeout is the time limit of a probe. It equals patience, because a half-open circuit breaker opens again if a trial
	// has no result by then.
	probeTimeout = patience
	// After an outage, Recovery makes the delayed operations due immediately and then every resumeInterval for resumeFor. Doing
	// this only once is not enough: operations that were rejected just before the end of the outage store their retries later,
	// and some calls fail under the load that follows an outage.
	resumeInterval = 5 * time.Second
	resumeFor      = 15 * time.Second
	// After the end of an outage, Recovery ignores the ends of further outages for resumePause. Otherwise, a flapping system would
	// cause all waiting operations to run after each short recovery.
	resumePause = time.Minute
)

// Recovery resumes operations soon after an outage. Delayed operations also retry automatically, but at growing intervals.
// Recovery probes the system every few seconds during an outage, and makes the delayed operations due when the system responds
// again. Every replica runs a Recovery for each of its Systems.
type Recovery struct {
	System *System
	// Probe makes a cheap call through the Transport of the System. The System evaluates the outcome.
	Probe func(ctx context.Context) error
	// Operations is the store of the operations that may be waiting for the system.
	Operations Operations
	// Wake is called after operations have become due, so that the engine claims them immediately.
	Wake  func()
	Clock clock.WithTicker
	Log   logrus.FieldLogger
}

// Operations is the part of the engine's store that a Recovery needs; *operations.Store implements it.
type Operations interface {
	// Resume finds the operations that are waiting to retry after an error of the component, whichever replica ran them, and
	// makes them due now. It returns their number.
	Resume(ctx context.Context, component string, now time.Time) (int64, error)
}

// Run monitors the System until the context ends, and then returns nil.
func (r Recovery) Run(ctx context.Context) error {
	ticker := r.Clock.NewTicker(checkInterval)
	defer ticker.Stop()

	var (
		over        int       // number of outages that have ended
		ended, next time.Time // end of the last outage after which operations were resumed, and time of the next resume
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

// probe makes the trial call of a half-open circuit breaker, so that no operation has to make it.
func (r Recovery) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()

	// The circuit breaker has already recorded the outcome, so the error is only logged.
	if err := r.Probe(ctx); err != nil {
		r.Log.WithError(err).Debugf("probing %s failed", r.System.options.Title)
	}
}

// resume wakes the operations that are waiting for the component. A failure is only logged, because the operations also retry
// automatically.
func (r Recovery) resume(ctx context.Context, status Status) {
	resumed, err := r.Operations.Resume(ctx, status.Component, r.Clock.Now())

	switch {
	case err != nil && ctx.Err() == nil:
		r.Log.WithError(err).Warn("resuming operations after an outage failed; the operations retry automatically")
	case resumed > 0:
		r.Wake()
		r.Log.WithField("operations", resumed).Infof("%s is available again: resuming operations", r.System.options.Title)
	}
}
