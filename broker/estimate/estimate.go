// Package estimate predicts the end of running operations from the durations of past ones. An Estimator reads a bounded number of
// recent operations every minute (Part) and answers from memory, so polls cost no query. Each replica has its own.
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
	// samples is the number of newest durations of a kind and plan that count, so that an estimate follows changes of the provider.
	samples = 20
)

// Past reads the durations of recent operations that succeeded, newest first. instances.Store implements it.
type Past interface {
	Durations(ctx context.Context) ([]instances.Duration, error)
}

// key identifies operations that take about the same time. An empty plan stands for all plans.
type key struct{ kind, planID string }

// Estimator knows how long operations usually take. The nil Estimator knows nothing. It is safe for concurrent use.
type Estimator struct {
	past Past

	mutex   sync.RWMutex
	typical map[key]time.Duration
}

// New returns an estimator without knowledge until Refresh succeeds.
func New(past Past) *Estimator { return &Estimator{past: past} }

// Part returns the part that keeps the estimator up to date.
func (e *Estimator) Part(clock clock.WithTicker, log logrus.FieldLogger) lifecycle.Part {
	return lifecycle.Periodic{Name: "durations of operations", Every: every, Work: e.Refresh, Clock: clock, Log: log}.Part()
}

// Refresh reads the past operations again. After an error the estimator keeps what it knows.
func (e *Estimator) Refresh(ctx context.Context) error {
	past, err := e.past.Durations(ctx)
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

// End returns when an operation that started at the given time is expected to end: the median of the past operations of its kind
// and plan, or of its kind if the plan is unknown or has none. It is zero without such operations, and for one that has not
// started. An operation that takes longer than usual has an end in the past.
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
