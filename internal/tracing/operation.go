package tracing

import (
	"context"
	"crypto/sha256"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/environment-broker/environment-broker/process"
)

// The attributes of spans about operations, as the log names them.
const (
	attributeOperation = "operation.id"
	attributeInstance  = "instance.id"
	attributeKind      = "operation.kind"
	attributeStage     = "operation.stage"
	attributeStep      = "operation.step"
	attributeAttempt   = "operation.attempt"
	attributeOutcome   = "operation.outcome"
)

// Operations tells of each operation as a span, and of each attempt of a step as a span within that. It implements process.Tracer.
type Operations struct {
	tracing *Tracing
}

var _ process.Tracer = Operations{}

// Operations returns the tracer of an engine, or nil when tracing is off.
func (t *Tracing) Operations() process.Tracer {
	if t == nil {
		return nil
	}

	return Operations{t}
}

// Attempt implements process.Tracer.
func (o Operations) Attempt(ctx context.Context, record process.Record, attempt process.Attempt,
) (context.Context, func(process.Outcome, string)) {
	_, own := o.spanOf(record)

	//nolint:spancheck // the function that is returned ends it
	ctx, span := o.tracing.tracer.Start(trace.ContextWithRemoteSpanContext(ctx, own), attempt.Step, trace.WithAttributes(
		attribute.String(attributeOperation, record.ID), attribute.String(attributeInstance, record.InstanceID),
		attribute.String(attributeKind, record.Kind), attribute.String(attributeStage, attempt.Stage),
		attribute.String(attributeStep, attempt.Step), attribute.Int(attributeAttempt, attempt.Number),
	))

	return ctx, func(outcome process.Outcome, message string) { //nolint:spancheck // as above
		span.SetAttributes(attribute.String(attributeOutcome, string(outcome)))

		if outcome == process.StepFailed || outcome == process.Retrying {
			span.SetStatus(codes.Error, message)
		}

		span.End()
	}
}

// Ended implements process.Tracer: only now is it known how long the operation took.
func (o Operations) Ended(record process.Record) {
	parent, own := o.spanOf(record)
	ctx := known(trace.ContextWithRemoteSpanContext(context.Background(), parent), own)

	_, span := o.tracing.tracer.Start(ctx, "operation "+record.Kind, trace.WithTimestamp(record.CreatedAt), trace.WithAttributes(
		attribute.String(attributeOperation, record.ID), attribute.String(attributeInstance, record.InstanceID),
		attribute.String(attributeKind, record.Kind), attribute.String(attributeOutcome, string(record.State)),
	))

	if record.State == process.Failed {
		span.SetStatus(codes.Error, record.Problem.Message)
	}

	span.End(trace.WithTimestamp(record.FinishedAt))
}

// spanOf returns the span of an operation, and the one within which it was ordered. Every replica comes to the same. One that nobody's
// request has ordered begins a trace, whose id is that of the operation.
func (o Operations) spanOf(record process.Record) (parent, own trace.SpanContext) {
	parent = carried(record.Trace)
	traceID, flags := parent.TraceID(), parent.TraceFlags()
	digest := sha256.Sum256([]byte("operation " + record.ID))

	if !parent.IsValid() {
		traceID = trace.TraceID(digest[:])
		if id, err := uuid.Parse(record.ID); err == nil {
			traceID = trace.TraceID(id)
		}

		decision := o.tracing.sampler.ShouldSample(sdktrace.SamplingParameters{ParentContext: context.Background(), TraceID: traceID})
		flags = flags.WithSampled(decision.Decision == sdktrace.RecordAndSample)
	}

	return parent, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: trace.SpanID(digest[len(digest)-len(trace.SpanID{}):]), TraceFlags: flags, Remote: true,
	})
}
