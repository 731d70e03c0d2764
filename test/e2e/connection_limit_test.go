package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/replica"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestDatabaseWithoutFreeConnections takes all connections of the PostgreSQL that both services use, during an operation.
// Responses have a Retry-After header, the engines wait, and work resumes when connections are available again.
func TestDatabaseWithoutFreeConnections(t *testing.T) {
	t.Parallel()

	server := postgrestest.Own(t, "max_connections=40")
	fresh := func(_ testing.TB, service string) replica.Database {
		return harness.PostgresSettings(server.Database(t), service)
	}

	l := start(t, fresh, 200*time.Millisecond)
	l.Create("before", harness.PlanAWS)

	release := server.ExhaustConnections(t)

	for method, path := range map[string]string{
		http.MethodPut: harness.InstancePath("during") + "?accepts_incomplete=true", http.MethodGet: harness.InstancePath("before") + "/last_operation",
	} {
		got, err := l.Try(method, path, harness.Order(harness.PlanAWS))
		if err != nil {
			t.Fatal(err)
		}

		if got.Status != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
			t.Errorf("%s %s returned %d, Retry-After %q", method, path, got.Status, got.Header.Get("Retry-After"))
		}
	}

	l.Until("a failed claim of the broker's engine", func() bool { return l.metric("environment_broker_engine_claims_failed_total") > 1 })

	release()

	l.WantSucceeded("before")
	l.Create("during", harness.PlanAWS)
	l.WantSucceeded("during")

	if shoots := l.shoots(); len(shoots) != 2 {
		t.Errorf("want one Shoot for each instance, got %d", len(shoots))
	}
}

// metric returns the value of a counter of the broker, summed over its labels.
func (e env) metric(name string) float64 {
	e.Helper()

	families, err := e.services.Broker.Metrics.Gather()
	if err != nil {
		e.Fatal(err)
	}

	total := 0.0

	for _, family := range families {
		if family.GetName() == name {
			for _, series := range family.GetMetric() {
				total += series.GetCounter().GetValue()
			}
		}
	}

	return total
}
