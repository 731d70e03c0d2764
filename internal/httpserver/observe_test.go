package httpserver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/tracing"
)

// observed returns a handler behind Observe, and a hook that records its log lines. The handler has
// one route: PUT calls NotePlan, and GET calls NotePoll.
func observed(t *testing.T, metrics *httpserver.Metrics) (http.Handler, *logtest.Hook) {
	t.Helper()

	router := mux.NewRouter()
	router.NotFoundHandler = httpserver.Endpoint(httpserver.NotFound)
	router.Use(httpserver.Trace)
	router.Handle("/things/{id}", httpserver.Methods{
		http.MethodPut: httpserver.Endpoint(func(r *http.Request) (httpserver.Response, error) {
			httpserver.NotePlan(r.Context(), "aws")

			return httpserver.OK(nil), nil
		}),
		http.MethodGet: httpserver.Endpoint(func(r *http.Request) (httpserver.Response, error) {
			httpserver.NotePoll(r.Context())

			if status := map[string]int{"gone": http.StatusGone, "missing": http.StatusNotFound}[mux.Vars(r)["id"]]; status != 0 {
				return httpserver.Response{}, httpserver.Refuse(status, "no")
			}

			return httpserver.OK(nil), nil
		}),
	})

	logger, hook := logtest.NewNullLogger()
	logger.SetLevel(5) // debug

	return httpserver.Wrap(router, httpserver.Observe(logger, metrics, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))), hook
}

func TestRequestsAreCountedByRouteAndPlan(t *testing.T) {
	registry := prometheus.NewRegistry()
	handler, _ := observed(t, httpserver.NewMetrics(registry))

	for _, request := range [][2]string{
		{http.MethodPut, "/things/1"},
		{http.MethodPut, "/things/2"},
		{http.MethodGet, "/things/gone"},
		{"BREW", "/things/1"},
		{http.MethodGet, "/secret-path"},
	} {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), request[0], request[1], http.NoBody))
	}

	want := `
		# HELP environment_broker_http_requests_total Requests by method, route, plan and status. The route is empty if the request was rejected before routing or if the path is unknown. The plan is empty unless the request names a plan of the catalog. GraphQL responses with an error have the status of the error.
		# TYPE environment_broker_http_requests_total counter
		environment_broker_http_requests_total{method="GET",plan="",route="",status="404"} 1
		environment_broker_http_requests_total{method="GET",plan="",route="/things/{id}",status="410"} 1
		environment_broker_http_requests_total{method="PUT",plan="aws",route="/things/{id}",status="200"} 2
		environment_broker_http_requests_total{method="other",plan="",route="/things/{id}",status="405"} 1
	`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "environment_broker_http_requests_total"); err != nil {
		t.Error(err)
	}

	if series := testutil.CollectAndCount(registry, "environment_broker_http_request_duration_seconds"); series != 4 {
		t.Errorf("the durations have %d series, want one for each method and route", series)
	}
}

func TestPollsAreLoggedForDebugging(t *testing.T) {
	handler, hook := observed(t, nil)

	for path, want := range map[string]string{"/things/1": "debug", "/things/gone": "debug", "/things/missing": "info"} {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))

		if got := hook.LastEntry().Level.String(); got != want {
			t.Errorf("a poll of %s is logged at level %s, want %s", path, got, want)
		}
	}
}

func TestResponsesNameTheirTrace(t *testing.T) {
	const (
		traceID = "0af7651916cd43dd8448eb211c80319c"
		kept    = "00-" + traceID + "-b7ad6b7169203331-01"
		dropped = "00-" + traceID + "-b7ad6b7169203331-00"
	)

	on := tracing.NewWith(sdktrace.NewSimpleSpanProcessor(tracetest.NewInMemoryExporter()), 1, resource.Empty())

	for name, test := range map[string]struct {
		reason, traceparent, want string
		tracing                   *tracing.Tracing
	}{
		"traced":      {"the client can search for the trace", kept, traceID, on},
		"not sampled": {"no collector has the trace", dropped, "", on},
		"off":         {"without tracing there is no trace", kept, "", nil},
	} {
		handler, hook := observed(t, nil)
		recorder := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/things/missing", http.NoBody)
		request.Header.Set("Traceparent", test.traceparent)
		test.tracing.Receive(handler).ServeHTTP(recorder, request)

		if got := recorder.Header().Get(httpserver.TraceID); got != test.want {
			t.Errorf("%s: %s: the header is %q, want %q", name, test.reason, got, test.want)
		}

		if got, _ := hook.LastEntry().Data[logging.TraceID].(string); got != test.want {
			t.Errorf("%s: %s: the log line has %q, want %q", name, test.reason, got, test.want)
		}
	}
}
