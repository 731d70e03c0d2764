package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestDatabaseWithoutFreeConnections occupies all connections of the PostgreSQL server that both services share, while an
// operation is in progress. Meanwhile the broker must return 503 with a Retry-After header, and no engine can claim operations.
// When connections are free again, both services must resume their work.
func TestDatabaseWithoutFreeConnections(t *testing.T) {
	t.Parallel()

	server := postgrestest.Own(t, "max_connections=40")
	database := func(_ testing.TB, service string) replica.Database {
		return harness.PostgresSettings(server.Database(t), service)
	}

	e := start(t, database, 200*time.Millisecond)
	e.Create("before", harness.PlanAWS)

	release := server.ExhaustConnections(t)

	for method, path := range map[string]string{
		http.MethodPut: harness.InstancePath("during") + "?accepts_incomplete=true", http.MethodGet: harness.InstancePath("before") + "/last_operation",
	} {
		got, err := e.Try(method, path, harness.Order(harness.PlanAWS))
		if err != nil {
			t.Fatal(err)
		}

		if got.Status != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
			t.Errorf("%s %s returned %d, Retry-After %q", method, path, got.Status, got.Header.Get("Retry-After"))
		}
	}

	e.Until("a failed claim of the broker's engine", func() bool { return e.metric("environment_broker_engine_claims_failed_total") > 1 })

	release()

	e.WantSucceeded("before")
	e.Create("during", harness.PlanAWS)
	e.WantSucceeded("during")

	if shoots := e.shoots(); len(shoots) != 2 {
		t.Errorf("want one Shoot for each instance, got %d", len(shoots))
	}
}

// metric returns the sum of all series of one of the broker's counters.
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
