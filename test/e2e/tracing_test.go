package e2e

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	broker "github.com/environment-broker/environment-broker/broker/service"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// traces is an OpenTelemetry collector that records all spans.
type traces struct {
	mutex sync.Mutex
	spans []*otlp.Span
}

func (c *traces) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)

	var request collector.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(body, &request) != nil {
		w.WriteHeader(http.StatusBadRequest)

		return
	}

	c.mutex.Lock()
	defer c.mutex.Unlock()

	for _, resource := range request.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
}

// paths counts the spans by path. A path lists the span names from the root of the trace to the span.
func (c *traces) paths() map[string]int {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	byID := map[string]*otlp.Span{}
	for _, span := range c.spans {
		byID[string(span.GetSpanId())] = span
	}

	paths := map[string]int{}

	for _, span := range c.spans {
		names := []string{span.GetName()}
		for parent := byID[string(span.GetParentSpanId())]; parent != nil; parent = byID[string(parent.GetParentSpanId())] {
			names = append(names, parent.GetName())
		}

		slices.Reverse(names)
		paths[strings.Join(names, " > ")]++
	}

	return paths
}

// TestOneTraceForOneCreate creates an instance and checks that the spans of both services form one trace.
func TestOneTraceForOneCreate(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100") // milliseconds between two exports

	collected := &traces{}
	server := httptest.NewServer(collected)
	t.Cleanup(server.Close)

	e := start(t, harness.SQLite, 100*time.Millisecond, func(broker *broker.Config, provisioner *provisioner.Config) {
		broker.Tracing.Endpoint, provisioner.Tracing.Endpoint = server.URL, server.URL
	})

	e.Create("traced", harness.PlanAWS)
	e.WantSucceeded("traced")

	const (
		request              = "PUT /v2/service_instances/{instance_id}"
		provision            = request + " > operation provision"
		call                 = provision + " > Create_Runtime_Without_Kyma > POST provisioner > mutation provisionRuntime"
		provisionerOperation = call + " > operation ProvisionNoInstall"
	)

	for _, path := range []string{
		request, provision, provision + " > Create_Runtime_Without_Kyma", call, provisionerOperation, provisionerOperation + " > Create_Shoot",
		provisionerOperation + " > Set_Administrators > DELETE runtime", provision + " > Get_Kubeconfig > GET runtime",
	} {
		e.Until("the span "+path, func() bool { return collected.paths()[path] > 0 })
	}

	// A service exports a span when the span ends, so a child can arrive before its parent.
	unrelated := func() []string {
		return slices.DeleteFunc(slices.Sorted(maps.Keys(collected.paths())), func(path string) bool { return strings.HasPrefix(path, request) })
	}

	if !harness.Within(harness.Patience, func() bool { return len(unrelated()) == 0 }) {
		t.Errorf("unrelated spans: %q; polls and the feed must have no spans", unrelated())
	}

	paths := collected.paths()
	if paths[request] != 1 || paths[provision] != 1 || paths[provisionerOperation] != 1 {
		t.Errorf("want one trace for one creation, got %v", paths)
	}
}
