package process

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/logging"
)

// Observer is told what an engine does, for metrics. It must not block.
type Observer interface {
	// Began tells that a worker took up an operation.
	Began(kind string)
	// PickedUp tells for how long an operation was due before a worker took it up. Those taken over from a replica are left out.
	PickedUp(kind string, delay time.Duration)
	// Left tells that the worker is free again.
	Left(kind string)
	// Attempted tells what came of a run of a step.
	Attempted(kind, step string, outcome Outcome, took time.Duration)
	// Ended tells that an operation came to its end: each one once, over all replicas.
	Ended(record Record)
	// ClaimFailed tells that the store could not be asked for work.
	ClaimFailed()
	// LeaseLost tells that a run ended because another replica has claimed its operation.
	LeaseLost()
}

// unobserved is the observer of an engine that has none.
type unobserved struct{}

func (unobserved) Began(string)                                     {}
func (unobserved) PickedUp(string, time.Duration)                   {}
func (unobserved) Left(string)                                      {}
func (unobserved) Attempted(string, string, Outcome, time.Duration) {}
func (unobserved) Ended(Record)                                     {}
func (unobserved) ClaimFailed()                                     {}
func (unobserved) LeaseLost()                                       {}

// Ended tells whoever follows the engine of an operation that came to its end. A store tells so of those that are canceled before their turn.
func (e *Engine[D]) Ended(record Record) {
	e.config.Observer.Ended(record)
	e.config.Tracer.Ended(record)
	e.log.WithFields(map[string]any{
		logging.OperationID: record.ID, logging.InstanceID: record.InstanceID, logging.Kind: record.Kind,
		logging.State: record.State, logging.Reason: record.Problem.Message,
	}).Info("operation ended")
}

// Tracer follows operations across systems: it knows to which operation the calls of a step belong. It must not block.
type Tracer interface {
	// Attempt is called before a run of a step, which then has the context that it returns. The function is called once: when it is
	// known what came of the run.
	Attempt(ctx context.Context, record Record, attempt Attempt) (context.Context, func(outcome Outcome, message string))
	// Ended tells of an operation that came to its end.
	Ended(record Record)
}

// untraced is the tracer of an engine that has none.
type untraced struct{}

func (untraced) Attempt(ctx context.Context, _ Record, _ Attempt) (context.Context, func(Outcome, string)) {
	return ctx, func(Outcome, string) {}
}

func (untraced) Ended(Record) {}
