// Package estimate predicts when running operations will end, from the durations of past operations and of their steps. Every
// minute, an Estimator reads a bounded number of recent operations (see Estimator.Part) and keeps their durations in memory, so
// polls need no further query. Each replica has its own Estimator.
package estimate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
)

const (
	// every is the interval between two reads of past operations.
	every = time.Minute
	// samples is the number of operations that a forecast uses, per kind and plan. Only the newest ones count, so that
	// forecasts follow changes at the provider.
	samples = 40
	// batch is the maximum number of operations whose steps are read in one query.
	batch = 100
)

// History returns the durations of recent successful operations, newest first. instances.Store implements it.
type History interface {
	Durations(ctx context.Context) ([]instances.Duration, error)
}

// Steps returns when the steps of operations started and ended. operations.Store implements it.
type Steps interface {
	StepTimes(ctx context.Context, ids []string) ([]operations.StepTime, error)
}

// key identifies operations of similar duration. An empty plan ID stands for all plans.
type key struct{ kind, planID string }

// Estimator makes forecasts for operations. A nil Estimator makes no forecasts. It is safe for concurrent use.
type Estimator struct {
	history History
	steps   Steps

	mutex sync.RWMutex
	past  map[key][]*past
}

// New returns an Estimator. It makes no forecasts until Refresh has succeeded.
func New(history History, steps Steps) *Estimator { return &Estimator{history: history, steps: steps} }

// Part returns the lifecycle.Part that calls Refresh periodically.
func (e *Estimator) Part(clock clock.WithTicker, log logrus.FieldLogger) lifecycle.Part {
	return lifecycle.Periodic{Name: "durations of operations", Every: every, Work: e.Refresh, Clock: clock, Log: log}.Part()
}

// Refresh reads the durations of past operations, and the times of the steps of those that it has not read before. If it fails,
// the Estimator keeps the previous durations. It must not run concurrently with itself.
func (e *Estimator) Refresh(ctx context.Context) error {
	durations, err := e.history.Durations(ctx)
	if err != nil {
		return fmt.Errorf("refreshing the forecasts: %w", err)
	}

	known := e.known()
	grouped := map[key][]*past{}
	unread := map[string]*past{}

	for _, duration := range durations {
		one := known[duration.OperationID]
		if one == nil {
			one = &past{id: duration.OperationID, began: duration.Started, took: duration.Took}
		}

		for _, key := range slices.Compact([]key{{duration.Kind, duration.PlanID}, {duration.Kind, ""}}) {
			if len(grouped[key]) < samples {
				grouped[key] = append(grouped[key], one)

				if one.steps == nil {
					unread[one.id] = one
				}
			}
		}
	}

	if err := e.readSteps(ctx, unread); err != nil {
		return fmt.Errorf("refreshing the forecasts: %w", err)
	}

	e.mutex.Lock()
	defer e.mutex.Unlock()

	e.past = grouped

	return nil
}

// known returns the past operations in memory, keyed by ID.
func (e *Estimator) known() map[string]*past {
	e.mutex.RLock()
	defer e.mutex.RUnlock()

	known := map[string]*past{}

	for _, group := range e.past {
		for _, one := range group {
			known[one.id] = one
		}
	}

	return known
}

// readSteps sets the steps of the operations. An operation whose timeline was removed gets no steps, and is not read again.
func (e *Estimator) readSteps(ctx context.Context, unread map[string]*past) error {
	ids := make([]string, 0, len(unread))
	for id, one := range unread {
		one.steps = map[string]span{}
		ids = append(ids, id)
	}

	for ids := range slices.Chunk(ids, batch) {
		times, err := e.steps.StepTimes(ctx, ids)
		if err != nil {
			return err
		}

		for _, step := range times {
			one := unread[step.OperationID]
			one.steps[step.Step] = span{from: step.BeganAt.Sub(one.began), took: step.Took()}
		}
	}

	return nil
}

// Forecast predicts the end of an operation from past operations of the same kind and plan, or of the same kind if the plan is
// unknown or has no past operations. The forecast is zero if there are none, or if the operation has not started or has ended.
func (e *Estimator) Forecast(record process.Record, planID string, now time.Time) process.Forecast {
	if e == nil || record.StartedAt.IsZero() || record.State.Terminal() {
		return process.Forecast{}
	}

	return forecast(e.pastOf(record.Kind, planID), record, now)
}

// Usual returns the median and the 95th percentile of the durations of past operations of the given kind, or 0 if there are none.
func (e *Estimator) Usual(kind string) (likely, late time.Duration) {
	if e == nil {
		return 0, 0
	}

	took := []time.Duration{}
	for _, one := range e.pastOf(kind, "") {
		took = append(took, one.took)
	}

	return quantile(took, median), quantile(took, almostAll)
}

func (e *Estimator) pastOf(kind, planID string) []*past {
	e.mutex.RLock()
	defer e.mutex.RUnlock()

	if found := e.past[key{kind, planID}]; len(found) > 0 {
		return found
	}

	return e.past[key{kind, ""}]
}
