package broker_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/internal/httpserver"
)

// TestRequestsAreCountedByPlan checks the metric label of the plan. The plan comes from the query, the body or the
// instance; for plans outside of the catalog, the label is empty.
func TestRequestsAreCountedByPlan(t *testing.T) {
	registry := prometheus.NewRegistry()
	b := newFixture(t, func(options *broker.Options) { options.Metrics = httpserver.NewMetrics(registry) })

	operation := b.provisioned(instanceID)
	b.want("a poll without the plan", b.poll(instanceID, operation), 200)
	b.want("a poll with the plan", b.do(call{method: "GET", path: path(instanceID) + "/last_operation?plan_id=" + planAWS}), 200)
	b.want("an instance", b.get(instanceID), 200)
	b.want("an update without a plan", b.patch(instanceID, map[string]any{"context": map[string]any{"active": true}}), 200)
	b.want("an invented plan", b.do(call{
		method: "PUT", path: path("other") + "?accepts_incomplete=true", body: strings.ReplaceAll(order(), planAWS, "invented"),
	}), 400)
	b.want("a request rejected before routing", b.do(call{method: "GET", path: path(instanceID), user: "nobody"}), 401)

	const metric = "environment_broker_http_requests_total"

	want := `
		# HELP environment_broker_http_requests_total Requests by method, route, plan and status. The route is empty if the request was rejected before routing or if the path is unknown. The plan is empty unless the request names a plan of the catalog. GraphQL responses with an error have the status of the error.
		# TYPE environment_broker_http_requests_total counter
		environment_broker_http_requests_total{method="GET",plan="",route="",status="401"} 1
		environment_broker_http_requests_total{method="GET",plan="",route="/v2/service_instances/{instance_id}/last_operation",status="200"} 1
		environment_broker_http_requests_total{method="GET",plan="aws",route="/v2/service_instances/{instance_id}",status="200"} 1
		environment_broker_http_requests_total{method="GET",plan="aws",route="/v2/service_instances/{instance_id}/last_operation",status="200"} 1
		environment_broker_http_requests_total{method="PATCH",plan="aws",route="/v2/service_instances/{instance_id}",status="200"} 1
		environment_broker_http_requests_total{method="PUT",plan="",route="/v2/service_instances/{instance_id}",status="400"} 1
		environment_broker_http_requests_total{method="PUT",plan="aws",route="/v2/service_instances/{instance_id}",status="202"} 1
	`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), metric); err != nil {
		t.Error(err)
	}
}

// TestPollsAreNotInTheLog checks that polls are logged at debug level only, because clients send them every few
// seconds.
func TestPollsAreNotInTheLog(t *testing.T) {
	b := newFixture(t)
	operation := b.want("an order", b.put(instanceID, order()), 202).text("operation")

	if got := b.log.LastEntry().Level.String(); got != "info" {
		t.Errorf("an order is logged at level %s", got)
	}

	b.want("a poll", b.poll(instanceID, operation), 200)

	if got := b.log.LastEntry().Level.String(); got != "debug" {
		t.Errorf("a poll is logged at level %s, want debug", got)
	}
}
