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
)

// traces is a collector of OpenTelemetry.
type traces struct {
	mutex sync.Mutex
	spans []*otlp.Span
}

// ServeHTTP takes spans.
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

// roads tell of each span the way from the first one of its trace, with how many spans there are at its end.
func (c *traces) roads() map[string]int {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	byID := map[string]*otlp.Span{}
	for _, span := range c.spans {
		byID[string(span.GetSpanId())] = span
	}

	roads := map[string]int{}

	for _, span := range c.spans {
		names := []string{span.GetName()}
		for parent := byID[string(span.GetParentSpanId())]; parent != nil; parent = byID[string(parent.GetParentSpanId())] {
			names = append(names, parent.GetName())
		}

		slices.Reverse(names)
		roads[strings.Join(names, " > ")]++
	}

	return roads
}

// TestOneTraceForOneCreate follows an order through both services: each tells its part to a collector, and the parts fit together.
func TestOneTraceForOneCreate(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100") // milliseconds: the test waits for them

	told := &traces{}
	server := httptest.NewServer(told)
	t.Cleanup(server.Close)

	l := startWith(t, onSQLite, 100*time.Millisecond, nil, func(broker *broker.Config, provisioner *provisioner.Config) {
		broker.Tracing.Endpoint, provisioner.Tracing.Endpoint = server.URL, server.URL
	})

	l.create("traced", planAWS)
	l.succeeded("traced")

	const (
		request = "PUT /v2/service_instances/{instance_id}"
		ordered = request + " > operation provision"
		asked   = ordered + " > Create_Runtime_Without_Kyma > POST provisioner > mutation provisionRuntime"
		made    = asked + " > operation ProvisionNoInstall"
	)

	for _, road := range []string{
		request, ordered, ordered + " > Create_Runtime_Without_Kyma", asked, made, made + " > Create_Shoot",
		made + " > Set_Administrators > DELETE runtime", ordered + " > Get_Kubeconfig > GET runtime",
	} {
		l.until("there is a span "+road, func() bool { return told.roads()[road] > 0 })
	}

	// A call is told when it has ended, and each service tells for itself: what a call has led to may be told before it.
	strangers := func() []string {
		return slices.DeleteFunc(slices.Sorted(maps.Keys(told.roads())), func(road string) bool { return strings.HasPrefix(road, request) })
	}

	if !within(patience, func() bool { return len(strangers()) == 0 }) {
		t.Errorf("these are no part of the create; polls and feeds make no traces: %q", strangers())
	}

	roads := told.roads()
	if roads[request] != 1 || roads[ordered] != 1 || roads[made] != 1 {
		t.Errorf("one create is one trace, got %v", roads)
	}
}
