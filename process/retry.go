package process

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/logging"
)

// RetryPolicy determines when a step runs again after a retryable error. The zero value is invalid; see DefaultRetry.
type RetryPolicy struct {
	// First is the wait after the first failure. Each following wait is Factor times as long, up to Cap.
	First, Cap time.Duration
	Factor     float64
	// Jitter lengthens each wait at random by up to this fraction: 0.1 means 10 %.
	Jitter float64
	// Window is the retry window. It starts with the first of consecutive failed attempts; a success or a wait ends it. The
	// operation fails at the first failed attempt that starts after the window has passed.
	Window time.Duration
}

// DefaultRetry returns a policy for upstreams with outages of minutes. Its waits grow from 1 s to 1 min, and it gives up after an
// hour.
func DefaultRetry() RetryPolicy {
	return RetryPolicy{First: time.Second, Cap: time.Minute, Factor: 2, Jitter: 0.2, Window: time.Hour}
}

// Interval returns the wait after the failed attempt with the given number, counted from 1.
func (p RetryPolicy) Interval(attempt int) time.Duration {
	interval := min(float64(p.First)*math.Pow(p.Factor, float64(attempt-1)), float64(p.Cap))

	return time.Duration(interval * (1 + p.Jitter*rand.Float64()))
}

// validate rejects policies that would retry without a pause or forever.
func (p RetryPolicy) validate() error {
	if p.First <= 0 || p.Cap < p.First || p.Factor < 1 || p.Jitter < 0 || p.Window <= 0 {
		return fmt.Errorf("retry policy %+v: needs 0 < First <= Cap, Factor >= 1, Jitter >= 0, Window > 0", p)
	}

	return nil
}

// retry records a retryable error. It fails the operation if the stage's retry window has passed.
func (r *run[D]) retry(ctx context.Context, log logrus.FieldLogger, stage Stage[D], attempt Attempt, err error) {
	if attempt.failingFor() >= stage.Retry.Window {
		r.stepFailed(ctx, log, attempt, gaveUp("", err, stage.Retry.Window))

		return
	}

	attempt = attempt.failing()
	next := r.nextRun(stage.Retry.Interval(attempt.Failures))
	r.operation.Problem, r.operation.Progress = r.engine.problemOf(err), ""
	attempt.LastError = r.operation.Problem.ForOperators()

	log.WithError(err).WithField(logging.NextRun, next).Warn("step failed, will be retried")
	r.runAgain(ctx, attempt, Retrying, attempt.LastError, next)
}

// Successor returns the operation that retries a failed or canceled one. The retry inherits the data, the finished stages before
// the first stage of the retry (see Stage.RetryFrom), and the steps that operators skipped. former must include its payload.
func (e *Engine[D]) Successor(former Record, id string, at time.Time) New {
	process := e.processes[former.Kind]
	stages := process.reusableStages(former)

	return New{
		ID:             id,
		Kind:           former.Kind,
		InstanceID:     former.InstanceID,
		Tenant:         former.Tenant,
		VisibleTo:      former.VisibleTo,
		PredecessorID:  former.ID,
		Description:    "Operation created",
		FinishedStages: stages,
		SkippedSteps:   process.skippedSteps(former, stages),
		Payload:        former.Payload,
		At:             at,
	}
}

// reusableStages lists the stages that a retry of the operation does not run again: the stages before the first unfinished
// stage, or before the RetryFrom of that stage. If all stages are finished, the operation was canceled during the last step, and
// the store has discarded its effect. The retry then runs the last stage again.
func (p Process[D]) reusableStages(former Record) []string {
	names := p.StageNames()

	position := slices.IndexFunc(names, func(name string) bool { return !former.Finished(name) })
	if position < 0 {
		position = len(names) - 1
	}

	if from := p.Stages[position].RetryFrom; from != "" {
		position = slices.Index(names, from)
	}

	return names[:position]
}

// skippedSteps lists the skipped steps that a retry inherits: all skipped steps of the reused stages, and in the other stages those
// that operators may skip. A step that gave up runs again if operators may not skip it.
func (p Process[D]) skippedSteps(former Record, reused []string) []string {
	var steps []string

	for _, stage := range p.Stages {
		for _, task := range stage.Steps {
			name := task.Step.Name()

			skipped := slices.Contains(former.SkippedSteps, name)
			if !slices.Contains(reused, stage.Name) {
				// The operation may have ended before it reached the step that the operator asked to skip.
				skipped = task.Skippable && (skipped || former.Skip.Step == name)
			}

			if skipped {
				steps = append(steps, name)
			}
		}
	}

	return steps
}

// MaySkip reports whether operators may skip the step in operations of the given kind. It is false for unknown kinds and steps.
func (e *Engine[D]) MaySkip(kind, step string) bool {
	for _, stage := range e.processes[kind].Stages {
		for _, task := range stage.Steps {
			if task.Step.Name() == step {
				return task.Skippable
			}
		}
	}

	return false
}
