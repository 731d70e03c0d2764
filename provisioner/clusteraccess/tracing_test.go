package clusteraccess_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/telemetry"
	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
)

func TestCallsIntoClustersHaveSpans(t *testing.T) {
	access := clusteraccess.New(newCluster(t))
	kept := tracetest.NewInMemoryExporter()
	operations := telemetry.NewTracer(tracing.NewWith(sdktrace.NewSimpleSpanProcessor(kept), 1, resource.Empty()))

	if _, err := access.Agent(t.Context(), place()); err != nil {
		t.Fatal(err)
	}

	if spans := kept.GetSpans(); len(spans) > 0 {
		t.Errorf("a call outside a step has a span: %s", spans[0].Name)
	}

	ctx, end := operations.Attempt(t.Context(), process.Record{ID: "op-1"}, process.Attempt{Step: "Configure"})

	if err := access.ConfigureAgent(ctx, place(), configuration("op-1")); err != nil {
		t.Fatal(err)
	}

	end(process.Done, "")

	names := []string{}

	for _, span := range kept.GetSpans() {
		names = append(names, span.Name)

		for _, attribute := range span.Attributes {
			if strings.Contains(attribute.Value.String(), "hush") {
				t.Errorf("%s contains the token: %s", span.Name, attribute.Value.String())
			}
		}
	}

	slices.Sort(names)

	if diff := cmp.Diff([]string{"Configure", "GET runtime", "PATCH runtime", "POST runtime"}, names); diff != "" {
		t.Errorf("span names must contain the call and must not contain the cluster, -want +got:\n%s", diff)
	}
}
