package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/replica"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
)

// TestDatabaseWithoutFreeConnections has others take all connections of the PostgreSQL that both services use, while an operation is under
// way. Who asks is told to come back, the engines wait, and all goes on by itself once there are connections again.
func TestDatabaseWithoutFreeConnections(t *testing.T) {
	t.Parallel()

	server := postgrestest.Own(t, "max_connections=40")
	fresh := func(t *testing.T, service string) replica.Database {
		t.Helper()

		return postgresSettings(server.Database(t), service)
	}

	l := start(t, fresh, 200*time.Millisecond, nil)
	l.create("before", planAWS)

	leave := server.Crowd(t)

	for method, path := range map[string]string{
		http.MethodPut: instancePath("during") + "?accepts_incomplete=true", http.MethodGet: instancePath("before") + "/last_operation",
	} {
		got, err := l.try(method, path, orderOf(planAWS))
		if err != nil {
			t.Fatal(err)
		}

		if got.Status != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
			t.Errorf("%s %s gives %d, Retry-After %q", method, path, got.Status, got.Header.Get("Retry-After"))
		}
	}

	l.until("the broker's engine to ask in vain", func() bool { return l.metric("environment_broker_engine_claims_failed_total") > 1 })

	leave()

	l.succeeded("before")
	l.create("during", planAWS)
	l.succeeded("during")

	if shoots := l.shoots(); len(shoots) != 2 {
		t.Errorf("there are %d Shoots, want one for each instance", len(shoots))
	}
}

// metric is what a counter of the broker has come to, over all its labels.
func (l landscape) metric(name string) float64 {
	l.Helper()

	families, err := l.metrics.Gather()
	if err != nil {
		l.Fatal(err)
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
