package enginetelemetry

import (
	"context"
	"crypto/sha256"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/process"
)

// The attributes of spans of operations. Their last parts are the names of the log fields.
const (
	attributeOperation = "operation.id"
	attributeInstance  = "instance.id"
	attributeKind      = "operation.kind"
	attributeStage     = "operation.stage"
	attributeStep      = "operation.step"
	attributeAttempt   = "operation.attempt"
	attributeOutcome   = "operation.outcome"
)

// tracer creates a span for each operation, and a child span for each attempt of a step. Several replicas may work on one operation, so they
// derive the ids of its span from the operation instead of storing them.
type tracer struct {
	tracing *tracing.Tracing
}

// NewTracer returns the tracer of an engine, or nil if tracing is off.
func NewTracer(tracing *tracing.Tracing) process.Tracer {
	if tracing == nil {
		return nil
	}

	return tracer{tracing}
}

// Attempt implements process.Tracer.
func (t tracer) Attempt(ctx context.Context, record process.Record, attempt process.Attempt,
) (context.Context, func(process.Outcome, string)) {
	_, own := t.spanOf(record)

	ctx, span := t.tracing.Start(trace.ContextWithRemoteSpanContext(ctx, own), attempt.Step, trace.WithAttributes(
		attribute.String(attributeOperation, record.ID), attribute.String(attributeInstance, record.InstanceID),
		attribute.String(attributeKind, record.Kind), attribute.String(attributeStage, attempt.Stage),
		attribute.String(attributeStep, attempt.Step), attribute.Int(attributeAttempt, attempt.Number),
	))

	return ctx, func(outcome process.Outcome, message string) {
		span.SetAttributes(attribute.String(attributeOutcome, string(outcome)))

		if outcome == process.StepFailed || outcome == process.Retrying {
			span.SetStatus(codes.Error, message)
		}

		span.End()
	}
}

// Ended implements process.Tracer. Spans have a start and an end, so the span of the operation is created here, with the ids that spanOf
// derives.
func (t tracer) Ended(record process.Record) {
	parent, own := t.spanOf(record)
	ctx := tracing.WithIDs(trace.ContextWithRemoteSpanContext(context.Background(), parent), own)

	_, span := t.tracing.Start(ctx, "operation "+record.Kind, trace.WithTimestamp(record.CreatedAt), trace.WithAttributes(
		attribute.String(attributeOperation, record.ID), attribute.String(attributeInstance, record.InstanceID),
		attribute.String(attributeKind, record.Kind), attribute.String(attributeOutcome, string(record.State)),
	))

	if record.State == process.Failed {
		span.SetStatus(codes.Error, record.Problem.Message)
	}

	span.End(trace.WithTimestamp(record.FinishedAt))
}

// spanOf returns the span of an operation and its parent, the span of the request that ordered it. Every replica derives the same ids. An
// operation that no traced request ordered starts a trace whose id is the operation's, so that operators find it.
func (t tracer) spanOf(record process.Record) (parent, own trace.SpanContext) {
	parent = tracing.Parse(record.Trace)
	traceID, flags := parent.TraceID(), parent.TraceFlags()
	digest := sha256.Sum256([]byte("operation " + record.ID))

	if !parent.IsValid() {
		traceID = trace.TraceID(digest[:])
		if id, err := uuid.Parse(record.ID); err == nil {
			traceID = trace.TraceID(id)
		}

		flags = flags.WithSampled(t.tracing.Sampled(traceID))
	}

	return parent, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: trace.SpanID(digest[len(digest)-len(trace.SpanID{}):]), TraceFlags: flags, Remote: true,
	})
}
