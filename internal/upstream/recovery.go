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
	// probeTimeout bounds a probe.
	probeTimeout = patience
	// After an outage, Recovery makes operations due at once and then every resumeInterval for resumeFor. Once is not enough: an operation
	// whose call was rejected just before the end of the outage stores its retry after the end, and some calls fail under the load that
	// follows an outage.
	resumeInterval = 5 * time.Second
	resumeFor      = 15 * time.Second
	// resumePause is the shortest time between two outages after which operations are made due. Without the pause, a flapping system would
	// cause a run of all waiting operations with each short recovery.
	resumePause = time.Minute
)

// Recovery resumes operations soon after an outage. Operations that an outage delays retry by themselves, but at growing intervals. Recovery
// probes the system every few seconds, and makes the operations due when the system answers again. Every replica runs a Recovery for each
// of its Systems.
type Recovery struct {
	System *System
	// Probe makes a cheap call through the Transport of the System. The System judges the outcome.
	Probe func(ctx context.Context) error
	// Operations stores the operations that may wait for the system.
	Operations Operations
	// Wake is called after operations have become due, so that the engine claims them at once.
	Wake  func()
	Clock clock.WithTicker
	Log   logrus.FieldLogger
}

// Operations is the part of the engine's store that a Recovery needs; *operations.Store implements it.
type Operations interface {
	// Resume makes all operations due that wait for a retry after a problem of the component, and returns their number. It covers the
	// operations of all replicas.
	Resume(ctx context.Context, component string, now time.Time) (int64, error)
}

// Run watches the System until the context ends, and then returns nil.
func (r Recovery) Run(ctx context.Context) error {
	ticker := r.Clock.NewTicker(checkInterval)
	defer ticker.Stop()

	var (
		over        int       // number of outages that have ended
		ended, next time.Time // end of the last outage that made operations due, and the time to repeat that
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

// probe makes the trial call of a half-open circuit breaker, in place of an operation.
func (r Recovery) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()

	// The circuit breaker has already counted the outcome, in which a rejection is a success. The error is only for the log.
	if err := r.Probe(ctx); err != nil {
		r.Log.WithError(err).Debugf("probing %s failed", r.System.options.Title)
	}
}

// resume makes the operations due that wait for the component. A failure is logged, because the operations also retry by themselves.
func (r Recovery) resume(ctx context.Context, status Status) {
	resumed, err := r.Operations.Resume(ctx, status.Component, r.Clock.Now())

	switch {
	case err != nil && ctx.Err() == nil:
		r.Log.WithError(err).Warn("resuming operations after an outage failed; the operations retry by themselves")
	case resumed > 0:
		r.Wake()
		r.Log.WithField("operations", resumed).Infof("%s answers again, resuming operations", r.System.options.Title)
	}
}
