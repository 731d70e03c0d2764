package telemetry

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

// The attributes of the spans. They identify operations, instances and steps, and never contain payloads.
const (
	attributeOperation = "operation.id"
	attributeInstance  = "instance.id"
	attributeKind      = "operation.kind"
	attributeStage     = "operation.stage"
	attributeStep      = "operation.step"
	attributeAttempt   = "operation.attempt"
	attributeOutcome   = "operation.outcome"
)

// tracer creates a span for each operation and a child span for each attempt of a step. The attempts of an operation may run on
// several replicas. Each replica derives the ID of the operation's span from the ID of the operation, so the span ID need not be
// stored.
type tracer struct {
	tracing *tracing.Tracing
}

// NewTracer returns the tracer of an engine. It returns nil if tracing is nil, which means that tracing is off.
func NewTracer(tracing *tracing.Tracing) process.Tracer {
	if tracing == nil {
		return nil
	}

	return tracer{tracing}
}

// Attempt implements process.Tracer. It starts the span of an attempt. Calls that use the returned context get child spans of
// this span. The returned function ends the span.
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

// Ended implements process.Tracer. It creates the span of the operation, with the start and end times of the operation. The span
// cannot be started earlier: an exporter receives a span only when it ends, and an operation can outlive the replica that started
// it.
func (t tracer) Ended(record process.Record) {
	parent, own := t.spanOf(record)
	ctx := tracing.WithIDs(trace.ContextWithRemoteSpanContext(context.Background(), parent), own)

	_, span := t.tracing.Start(ctx, "operation "+record.Kind, trace.WithTimestamp(record.CreatedAt), trace.WithAttributes(
		attribute.String(attributeOperation, record.ID), attribute.String(attributeInstance, record.InstanceID),
		attribute.String(attributeKind, record.Kind), attribute.String(attributeOutcome, string(record.State)),
	))

	if record.State == process.Failed {
		span.SetStatus(codes.Error, record.Problem.ForOperators())
	}

	span.End(trace.WithTimestamp(record.FinishedAt))
}

// TraceID returns the ID of an operation's trace as 32 hexadecimal digits, or an empty string if the trace is not sampled. If
// tracing is off (nil), TraceID still returns the trace of the request that ordered the operation, provided that this request
// was traced.
func TraceID(tracing *tracing.Tracing, record process.Record) string {
	if tracing == nil && record.Trace == "" {
		return ""
	}

	_, own := tracer{tracing}.spanOf(record)
	if !own.IsSampled() {
		return ""
	}

	return own.TraceID().String()
}

// Traceparent returns the operation's span in the format of the traceparent header, for the objects that the operation writes to
// other systems. All attempts and replicas get the same value. It returns an empty string if tracing is off or the trace is not
// sampled.
func Traceparent(where *tracing.Tracing, record process.Record) string {
	if where == nil {
		return ""
	}

	_, own := tracer{where}.spanOf(record)
	if !own.IsSampled() {
		return ""
	}

	return tracing.Traceparent(trace.ContextWithSpanContext(context.Background(), own))
}

// spanOf returns the contexts of an operation's span and of its parent, the span of the request that ordered the operation. The
// result is the same on every replica. If the request was not traced, the operation gets its own trace. The trace has the ID of
// the operation, so that operators can find it.
func (t tracer) spanOf(record process.Record) (parent, own trace.SpanContext) {
	parent = tracing.Parse(record.Trace)
	traceID, flags := parent.TraceID(), parent.TraceFlags()
	digest := sha256.Sum256([]byte("operation " + record.ID))

	if !parent.IsValid() {
		traceID = trace.TraceID(digest[:])
		if id, err := uuid.Parse(record.ID); err == nil {
			traceID = trace.TraceID(id)
		}

		flags = flags.WithSampled(t.tracing != nil && t.tracing.Sampled(traceID))
	}

	return parent, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: trace.SpanID(digest[len(digest)-len(trace.SpanID{}):]), TraceFlags: flags, Remote: true,
	})
}
