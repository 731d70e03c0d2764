package service_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
)

// TestRequestsAreCountedByField checks that requests are counted by the field of the schema and not by the name of the
// GraphQL operation: clients choose that name, so it must not become a metric label. Only mutations are logged at level
// info.
func TestRequestsAreCountedByField(t *testing.T) {
	t.Parallel()

	logger, hook := logtest.NewNullLogger()
	logger.SetLevel(logrus.DebugLevel)

	f := startLogged(t, logger, time.Second)

	for _, query := range []string{
		`{"query":"query mine { runtimeOperationStatus(id: \"o\") { id } }"}`, `{"query":"mutation mine { deprovisionRuntime(id: \"r\") }"}`,
		`{"query":"query mine { nothing }"}`,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url, strings.NewReader(query))
		if err != nil {
			t.Fatal(err)
		}

		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Tenant", "acme")

		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}

		_ = response.Body.Close()
	}

	want := `
		# HELP environment_broker_http_requests_total Requests by method, route, plan and status. The route is empty if the request was rejected before routing or if the path is unknown. The plan is empty unless the request names a plan of the catalog. GraphQL responses with an error have the status of the error.
		# TYPE environment_broker_http_requests_total counter
		environment_broker_http_requests_total{method="POST",plan="",route="",status="422"} 1
		environment_broker_http_requests_total{method="POST",plan="",route="mutation deprovisionRuntime",status="404"} 1
		environment_broker_http_requests_total{method="POST",plan="",route="query runtimeOperationStatus",status="404"} 1
	`
	if err := testutil.GatherAndCompare(f.metrics, strings.NewReader(want), "environment_broker_http_requests_total"); err != nil {
		t.Error(err)
	}

	levels := map[string]string{}

	for _, entry := range hook.AllEntries() {
		if kind, _ := entry.Data["kind"].(string); entry.Message == "request completed" {
			levels[kind] = entry.Level.String()
		}
	}

	if levels["query runtimeOperationStatus"] != "debug" || levels["mutation deprovisionRuntime"] != "info" {
		t.Errorf("the levels of the log lines are %v", levels)
	}
}
