package telemetry_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/telemetry"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

type nothing struct{ name string }

func (n nothing) Name() string { return n.name }

func (nothing) Run(_ context.Context, operation process.Operation[struct{}], _ logrus.FieldLogger,
) (process.Operation[struct{}], time.Duration, error) {
	return operation, 0, nil
}

// endObserver is a process.Observer that sends a value on a channel when an operation ends.
type endObserver struct{ ended chan struct{} }

func (endObserver) RunBegan(string)                                          {}
func (endObserver) PickedUp(string, time.Duration)                           {}
func (endObserver) RunEnded(string)                                          {}
func (endObserver) Attempted(string, string, process.Outcome, time.Duration) {}
func (e endObserver) Ended(process.Record)                                   { e.ended <- struct{}{} }
func (endObserver) ClaimFailed()                                             {}
func (endObserver) LeaseLost()                                               {}

// BenchmarkOperation runs operations with five stages on SQLite, alternately with and without tracing. The ratio is an upper
// bound of the tracing overhead, because the steps do no work.
func BenchmarkOperation(b *testing.B) {
	where := tracing.NewWith(sdktrace.NewBatchSpanProcessor(tracetest.NewNoopExporter()), 1, resource.Empty())
	off, on := runner(b, nil), runner(b, telemetry.NewTracer(where))

	var took [2]time.Duration

	for b.Loop() {
		for i, run := range []func(){off, on} {
			began := time.Now()

			run()

			took[i] += time.Since(began)
		}
	}

	b.ReportMetric(float64(took[0].Microseconds())/float64(b.N), "off-µs/op")
	b.ReportMetric(float64(took[1].Microseconds())/float64(b.N), "on-µs/op")
	b.ReportMetric(float64(took[1])/float64(took[0]), "on/off")

	if err := where.Close(context.Background()); err != nil {
		b.Error(err)
	}
}

// BenchmarkAttempt measures the overhead of tracing per attempt of a step.
func BenchmarkAttempt(b *testing.B) {
	where := tracing.NewWith(sdktrace.NewBatchSpanProcessor(tracetest.NewNoopExporter()), 1, resource.Empty())
	tracer := telemetry.NewTracer(where)

	for b.Loop() {
		_, end := tracer.Attempt(b.Context(), process.Record{ID: operationID, Trace: sent}, process.Attempt{Step: "Order"})
		end(process.Done, "")
	}

	if err := where.Close(context.Background()); err != nil {
		b.Error(err)
	}
}

// runner starts an engine and returns a function that accepts an operation and waits until it has ended.
func runner(b *testing.B, tracer process.Tracer) func() {
	b.Helper()

	db := storagetest.SQLite(b)

	store, err := operations.Open(b.Context(), db, storagetest.Keys(b))
	if err != nil {
		b.Fatal(err)
	}

	ended := endObserver{make(chan struct{})}
	config := process.DefaultConfig()
	config.Observer, config.Tracer = ended, tracer

	measured := process.Process[struct{}]{Kind: "measured", Limit: time.Hour}
	for _, name := range []string{"One", "Two", "Three", "Four", "Five"} {
		measured.Stages = append(measured.Stages, process.Stage[struct{}]{
			Name: name, Steps: process.Steps(process.Step[struct{}](nothing{name})),
			Retry: process.RetryPolicy{First: time.Second, Cap: time.Second, Factor: 1, Window: time.Minute},
		})
	}

	engine, err := process.NewEngine(store, config, clock.RealClock{}, logging.Discard(), measured)
	if err != nil {
		b.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)

	go func() { stopped <- engine.Run(ctx) }()

	b.Cleanup(func() {
		stop()

		if err := <-stopped; err != nil {
			b.Error(err)
		}
	})

	return func() {
		id := uuid.NewString()

		if err := db.InTx(context.Background(), func(tx storage.Tx) error {
			return store.Accept(context.Background(), tx, process.New{
				ID: id, Kind: "measured", InstanceID: id, Payload: json.RawMessage(`{}`), At: time.Now(), Trace: sent,
			})
		}); err != nil {
			b.Fatal(err)
		}

		engine.Wake()
		<-ended.ended
	}
}
