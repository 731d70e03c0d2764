package process

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// RetryPolicy says when a step that met a passing error runs again: after First, then Factor times longer each time up to Cap,
// spread by Jitter (0.1: up to ten percent longer), until it has failed for the Window without success in between.
type RetryPolicy struct {
	First, Cap time.Duration
	Factor     float64
	Jitter     float64
	Window     time.Duration
}

// DefaultRetry suits outside systems that are away for minutes.
func DefaultRetry() RetryPolicy {
	return RetryPolicy{First: time.Second, Cap: time.Minute, Factor: 2, Jitter: 0.2, Window: time.Hour}
}

// Interval is the wait after the attempt with that number, counted from 1.
func (p RetryPolicy) Interval(attempt int) time.Duration {
	interval := min(float64(p.First)*math.Pow(p.Factor, float64(attempt-1)), float64(p.Cap))

	return time.Duration(interval * (1 + p.Jitter*rand.Float64()))
}

func (p RetryPolicy) validate() error {
	if p.First <= 0 || p.Cap < p.First || p.Factor < 1 || p.Jitter < 0 || p.Window <= 0 {
		return fmt.Errorf("retry policy %+v: needs 0 < First <= Cap, Factor >= 1, Jitter >= 0, Window > 0", p)
	}

	return nil
}

// Successor is the operation that retries one that failed or was canceled. It takes over the data, the stages that were
// finished, up to the one that the retry begins with, and what operators had left out.
func (e *Engine[D]) Successor(former Record, id string, at time.Time) New {
	process := e.processes[former.Kind]
	kept := process.keptBy(former)

	return New{
		ID:             id,
		Kind:           former.Kind,
		InstanceID:     former.InstanceID,
		Tenant:         former.Tenant,
		PredecessorID:  former.ID,
		Description:    "Operation created",
		FinishedStages: kept,
		SkippedSteps:   process.leftOutBy(former, kept),
		Payload:        former.Payload,
		At:             at,
	}
}

// keptBy lists the stages that the retry of an operation does not run again.
func (p Process[D]) keptBy(former Record) []string {
	names := p.StageNames()

	for position, stage := range p.Stages {
		if former.Finished(stage.Name) {
			continue
		}

		if stage.RetryFrom != "" {
			position = slices.Index(names, stage.RetryFrom)
		}

		return names[:position]
	}

	return names
}

// leftOutBy lists the steps that were not done in the stages that the retry of an operation keeps, and of those that it runs again the steps
// that it leaves out: an operator has decided so. A step that gave up by itself, and that no operator may have left out, is tried again.
func (p Process[D]) leftOutBy(former Record, kept []string) []string {
	var steps []string

	for _, stage := range p.Stages {
		for _, task := range stage.Steps {
			name := task.Step.Name()

			leftOut := slices.Contains(former.SkippedSteps, name)
			if !slices.Contains(kept, stage.Name) {
				// The operation may have ended before it came to what is to be skipped.
				leftOut = task.Skippable && (leftOut || former.Skip.Step == name)
			}

			if leftOut {
				steps = append(steps, name)
			}
		}
	}

	return steps
}

// MaySkip reports whether an operator may have the step of such an operation left out.
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
