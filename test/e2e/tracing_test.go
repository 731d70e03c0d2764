package e2e

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
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
	"github.com/environment-broker/environment-broker/provisioner/shoot"
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

// paths returns the number of spans by path. A path lists the span names from the root of the trace to the span.
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

// span returns a span with the given name, or nil if none has arrived.
func (c *traces) span(name string) *otlp.Span {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	for _, span := range c.spans {
		if span.GetName() == name {
			return span
		}
	}

	return nil
}

// IDs of the platform's trace, and of the span in it that calls the broker.
const (
	platformTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	platformSpan  = "00f067aa0ba902b7"
)

// TestOneTraceForOneCreate creates an instance within a trace of the platform, and checks that the spans of both services and the
// annotation of the Shoot belong to this trace. An update without a traceparent must start a new trace, which replaces the one in
// the annotation. An update whose trace is not sampled must remove the annotation.
func TestOneTraceForOneCreate(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100") // milliseconds between two exports

	collected := &traces{}
	server := httptest.NewServer(collected)
	t.Cleanup(server.Close)

	e := start(t, harness.SQLite, 100*time.Millisecond, func(broker *broker.Config, provisioner *provisioner.Config) {
		broker.Tracing.Endpoint, provisioner.Tracing.Endpoint = server.URL, server.URL
	})

	order, err := json.Marshal(harness.Order(harness.PlanAWS))
	if err != nil {
		t.Fatal(err)
	}

	reply, err := e.Do(harness.Call{
		Method: http.MethodPut, Path: harness.InstancePath("traced") + harness.Incomplete, Body: string(order),
		Header: http.Header{"Traceparent": {"00-" + platformTrace + "-" + platformSpan + "-01"}},
	})
	if err != nil || reply.Status != http.StatusAccepted || reply.Header.Get("X-Trace-Id") != platformTrace {
		t.Fatalf("the order gets %+v, %v; want status 202 and the trace of the platform", reply, err)
	}

	e.WantSucceeded("traced")

	const (
		request              = "PUT /v2/service_instances/{instance_id}"
		provision            = request + " > operation provision"
		call                 = provision + " > Create_Runtime_Without_Kyma > POST provisioner > mutation provisionRuntime"
		provisionerOperation = call + " > operation ProvisionNoInstall"
	)

	for _, path := range []string{
		request, provision, provision + " > Create_Runtime_Without_Kyma", call, provisionerOperation, provisionerOperation + " > Create_Shoot",
		provisionerOperation + " > Set_Administrators > GET runtime", provision + " > Get_Kubeconfig > GET runtime",
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

	if root := collected.span(request); hex.EncodeToString(root.GetTraceId()) != platformTrace || hex.EncodeToString(root.GetParentSpanId()) != platformSpan {
		t.Errorf("the request has the trace %x and the parent %x, want those of the platform", root.GetTraceId(), root.GetParentSpanId())
	}

	wantTraceOfShoot(e, collected, "operation ProvisionNoInstall")

	e.Update("traced", map[string]any{"parameters": map[string]any{"autoScalerMax": 5}})
	e.WantSucceeded("traced")
	e.Until("the span of the change", func() bool { return collected.span("operation UpgradeShoot") != nil })
	wantTraceOfShoot(e, collected, "operation UpgradeShoot")

	change := `{"service_id": "` + harness.ServiceID + `", "parameters": {"autoScalerMax": 6}}`

	reply, err = e.Do(harness.Call{
		Method: http.MethodPatch, Path: harness.InstancePath("traced") + harness.Incomplete, Body: change,
		Header: http.Header{"Traceparent": {"00-" + platformTrace + "-" + platformSpan + "-00"}},
	})
	if err != nil || reply.Status != http.StatusAccepted {
		t.Fatalf("the update gets %+v, %v", reply, err)
	}

	e.WantSucceeded("traced")

	shoots := e.shoots()
	if trace, found := shoots[0].Annotations[shoot.AnnotationTraceparent]; found || shoots[0].Spec.Provider.Workers[0].Maximum != 6 {
		t.Errorf("after a change that is not traced, the Shoot has the trace %q of an earlier one", trace)
	}
}

// wantTraceOfShoot compares the annotation of the Shoot with the span of the operation that last wrote the Shoot.
func wantTraceOfShoot(e env, collected *traces, operation string) {
	e.Helper()

	writer := collected.span(operation)
	want := fmt.Sprintf("00-%x-%x-01", writer.GetTraceId(), writer.GetSpanId())

	shoots := e.shoots()
	if len(shoots) != 1 || shoots[0].Annotations[shoot.AnnotationTraceparent] != want {
		e.Errorf("the annotations of the Shoots are %v, want the trace %s of the %s", shoots, want, operation)
	}
}
