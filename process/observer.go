package process

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/logging"
)

// Observer receives events of an engine, for metrics. Its methods are called concurrently and must not block. Package
// process/telemetry implements it.
type Observer interface {
	// RunBegan reports that a worker started a run.
	RunBegan(kind string)
	// PickedUp reports how long an operation was due before a worker started it. Takeovers from another replica are not reported.
	PickedUp(kind string, delay time.Duration)
	// RunEnded reports that the run has ended and its worker is free.
	RunEnded(kind string)
	// Attempted reports the outcome and the duration of an attempt.
	Attempted(kind, step string, outcome Outcome, took time.Duration)
	// Ended reports that an operation ended. It is called at most once for each operation, across all replicas.
	Ended(record Record)
	// ClaimFailed reports that the store returned an error when the engine searched for operations or claimed them.
	ClaimFailed()
	// LeaseLost reports that a run stopped because another replica has claimed its operation.
	LeaseLost()
}

// noObserver is the default Observer. It ignores all events.
type noObserver struct{}

func (noObserver) RunBegan(string)                                  {}
func (noObserver) PickedUp(string, time.Duration)                   {}
func (noObserver) RunEnded(string)                                  {}
func (noObserver) Attempted(string, string, Outcome, time.Duration) {}
func (noObserver) Ended(Record)                                     {}
func (noObserver) ClaimFailed()                                     {}
func (noObserver) LeaseLost()                                       {}

// Ended reports the end of an operation to the Observer, the Tracer and the log. The engine calls it after the write that ends
// the operation. Stores call it for operations that are canceled while pending, because no engine runs them.
func (e *Engine[D]) Ended(record Record) {
	e.config.Observer.Ended(record)
	e.config.Tracer.Ended(record)
	e.log.WithFields(map[string]any{
		logging.OperationID: record.ID, logging.InstanceID: record.InstanceID, logging.Kind: record.Kind,
		logging.State: record.State, logging.Reason: record.Problem.ForOperators(),
	}).Info("operation ended")
}

// Tracer follows operations across systems: it links the calls of a step to its operation. Its methods are called concurrently
// and must not block. Package process/telemetry implements it.
type Tracer interface {
	// Attempt is called before an attempt, which runs with the returned context. The returned function is called exactly once,
	// with the result of the attempt.
	Attempt(ctx context.Context, record Record, attempt Attempt) (context.Context, func(outcome Outcome, message string))
	// Ended reports that an operation ended.
	Ended(record Record)
}

// noTracer is the default Tracer. It creates no spans.
type noTracer struct{}

func (noTracer) Attempt(ctx context.Context, _ Record, _ Attempt) (context.Context, func(Outcome, string)) {
	return ctx, func(Outcome, string) {}
}

func (noTracer) Ended(Record) {}
