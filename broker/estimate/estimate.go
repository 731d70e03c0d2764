// Package estimate predicts when running operations will end, from the durations of past operations. An Estimator
// reads a bounded number of recent operations every minute (Part) and keeps the results in memory, so polls need no
// query. Each replica has a separate Estimator.
package estimate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/storage/instances"
)

const (
	// every is the interval between two reads of past operations.
	every = time.Minute
	// samples is the number of durations that an estimate uses, per kind and plan. Only the newest durations count, so
	// that estimates follow changes at the provider.
	samples = 20
)

// History returns the durations of recent successful operations, newest first. instances.Store implements it.
type History interface {
	Durations(ctx context.Context) ([]instances.Duration, error)
}

// key identifies operations of similar duration. An empty plan ID stands for all plans.
type key struct{ kind, planID string }

// Estimator estimates how long operations take. A nil Estimator makes no estimates. It is safe for concurrent use.
type Estimator struct {
	history History

	mutex   sync.RWMutex
	typical map[key]time.Duration
}

// New returns an Estimator. It makes no estimates until Refresh has succeeded.
func New(history History) *Estimator { return &Estimator{history: history} }

// Part returns the part of the service that calls Refresh periodically.
func (e *Estimator) Part(clock clock.WithTicker, log logrus.FieldLogger) lifecycle.Part {
	return lifecycle.Periodic{Name: "durations of operations", Every: every, Work: e.Refresh, Clock: clock, Log: log}.Part()
}

// Refresh reads the durations of past operations. If it fails, the Estimator keeps the previous estimates.
func (e *Estimator) Refresh(ctx context.Context) error {
	past, err := e.history.Durations(ctx)
	if err != nil {
		return fmt.Errorf("refreshing the estimates: %w", err)
	}

	took := map[key][]time.Duration{}

	for _, one := range past {
		for _, key := range slices.Compact([]key{{one.Kind, one.PlanID}, {one.Kind, ""}}) {
			if len(took[key]) < samples {
				took[key] = append(took[key], one.Took)
			}
		}
	}

	typical := make(map[key]time.Duration, len(took))
	for key, durations := range took {
		slices.Sort(durations)
		typical[key] = durations[len(durations)/2]
	}

	e.mutex.Lock()
	defer e.mutex.Unlock()

	e.typical = typical

	return nil
}

// End returns the expected end of an operation that started at the given time. It adds the median duration of past
// operations of the same kind and plan, or of the same kind if the plan is unknown or has no past operations. End
// returns zero if there are no such operations, or if started is zero. For an operation that takes longer than usual,
// the expected end lies in the past.
func (e *Estimator) End(kind, planID string, started time.Time) time.Time {
	if e == nil || started.IsZero() {
		return time.Time{}
	}

	e.mutex.RLock()
	defer e.mutex.RUnlock()

	typical, known := e.typical[key{kind, planID}]
	if !known {
		typical, known = e.typical[key{kind, ""}]
	}

	if !known {
		return time.Time{}
	}

	return started.Add(typical)
}
