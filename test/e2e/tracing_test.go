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

// traces is an OpenTelemetry collector.
type traces struct {
	mutex sync.Mutex
	spans []*otlp.Span
}

// ServeHTTP receives spans.
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

// paths returns the path of each span from the root of its trace, with the number of spans on that path.
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

// TestOneTraceForOneCreate follows an order through both services: each exports its spans, and they form one trace.
func TestOneTraceForOneCreate(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100") // milliseconds: the test waits for them

	collected := &traces{}
	server := httptest.NewServer(collected)
	t.Cleanup(server.Close)

	l := start(t, harness.SQLite, 100*time.Millisecond, func(broker *broker.Config, provisioner *provisioner.Config) {
		broker.Tracing.Endpoint, provisioner.Tracing.Endpoint = server.URL, server.URL
	})

	l.Create("traced", harness.PlanAWS)
	l.WantSucceeded("traced")

	const (
		request = "PUT /v2/service_instances/{instance_id}"
		ordered = request + " > operation provision"
		asked   = ordered + " > Create_Runtime_Without_Kyma > POST provisioner > mutation provisionRuntime"
		made    = asked + " > operation ProvisionNoInstall"
	)

	for _, path := range []string{
		request, ordered, ordered + " > Create_Runtime_Without_Kyma", asked, made, made + " > Create_Shoot",
		made + " > Set_Administrators > DELETE runtime", ordered + " > Get_Kubeconfig > GET runtime",
	} {
		l.Until("the span "+path, func() bool { return collected.paths()[path] > 0 })
	}

	// Each service exports a span when it has ended, so a child may arrive before its parent.
	unrelated := func() []string {
		return slices.DeleteFunc(slices.Sorted(maps.Keys(collected.paths())), func(path string) bool { return strings.HasPrefix(path, request) })
	}

	if !harness.Within(harness.Patience, func() bool { return len(unrelated()) == 0 }) {
		t.Errorf("unrelated spans: %q; polls and the feed must have none", unrelated())
	}

	paths := collected.paths()
	if paths[request] != 1 || paths[ordered] != 1 || paths[made] != 1 {
		t.Errorf("want one trace for one create, got %v", paths)
	}
}
