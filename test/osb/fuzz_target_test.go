package osb

import (
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/test/harness"
)

// target is a broker that accepts requests but executes no operation, so that every change to its rows comes from a request.
// It has one instance, whose creation is pending.
type target struct {
	harness.Endpoint

	instance string
	database *sql.DB
	tables   []string
}

// newTarget starts a broker for a fuzz target.
func newTarget(f *testing.F) *target {
	f.Helper()

	settings := harness.BrokerSettings(harness.SQLite(f, "broker"))
	configure(f, &settings, "APP_WORKERS=0")
	settings.Provisioner.URL = "http://127.0.0.1:1/graphql" // never called, because there are no workers

	service := harness.StartBroker(f, settings, logging.Discard())

	// This connection only reads, and never blocks the broker.
	database, err := sql.Open("sqlite", "file:"+settings.Database.Path+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		f.Fatal(err)
	}

	f.Cleanup(func() { database.Close() })

	at := &target{Endpoint: service.Endpoint, instance: "known", database: database}
	at.tables = at.resources(f)

	order := encode(fields{
		"service_id": harness.ServiceID, "plan_id": harness.PlanAWS, "organization_guid": "o", "space_guid": "s", "parameters": fields{},
	})

	got, err := send(at.Endpoint, harness.Call{Method: http.MethodPut, Path: harness.InstancePath(at.instance) + harness.Incomplete, Body: order})
	if err != nil || got.Status != http.StatusAccepted {
		f.Fatalf("the first order: %d %s, %v", got.Status, got.Raw, err)
	}

	return at
}

// resources returns the tables of instances, bindings and operations, without the audit log.
func (at *target) resources(t testing.TB) []string {
	t.Helper()

	rows, err := at.database.QueryContext(t.Context(), `SELECT name FROM sqlite_master WHERE type = 'table'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()

	var names []string

	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}

		if name == "instances" || name == "operations" || strings.Contains(name, "binding") {
			names = append(names, name)
		}
	}

	if err := rows.Err(); err != nil || len(names) < 2 {
		t.Fatalf("want at least two tables of resources, got %v, %v", names, err)
	}

	return names
}

// state formats the number of rows in each table, and the state of the known instance.
func (at *target) state(t testing.TB) string {
	t.Helper()

	var all strings.Builder

	for _, table := range at.tables {
		var count int
		if err := at.database.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table).Scan(&count); err != nil {
			t.Fatal(err)
		}

		fmt.Fprintf(&all, "%s: %d rows\n", table, count)
	}

	var updated, states string

	err := at.database.QueryRowContext(t.Context(), `SELECT coalesce(max(updated_at), ''),
		coalesce((SELECT group_concat(state) FROM operations WHERE instance_id = ?), '') FROM instances WHERE id = ?`,
		at.instance, at.instance).Scan(&updated, &states)
	if err != nil {
		t.Fatal(err)
	}

	return all.String() + "the known instance: " + updated + " " + states
}

// check sends a call. The broker must survive it, return no server error and no response outside of the protocol, and change nothing if
// it rejects the call.
func (at *target) check(t *testing.T, call harness.Call) {
	t.Helper()

	before := at.state(t)
	start := time.Now()

	got, err := send(at.Endpoint, call)
	if err != nil {
		if _, unsendable := at.Request(t.Context(), call); unsendable != nil || strings.Contains(err.Error(), "invalid header field") {
			t.Skip("HTTP clients cannot send the request")
		}

		t.Fatalf("%s %q: %v", call.Method, call.Path, err)
	}

	if got.Status >= http.StatusInternalServerError {
		t.Errorf("%s %q with %q: status %d: %s", call.Method, call.Path, call.Body, got.Status, got.Raw)
	}

	if took := time.Since(start); took > promptly {
		t.Errorf("%s %q: the response took %s", call.Method, call.Path, took)
	}

	if protocol(call.Path) {
		checkResponse(t, call, got)
	}

	if after := at.state(t); got.Status >= http.StatusBadRequest && before != after {
		t.Errorf("%s %q with %q was rejected with %d %s, but changed something:\nbefore %s\nafter  %s",
			call.Method, call.Path, call.Body, got.Status, got.Raw, before, after)
	}
}

// protocol reports whether a path belongs to the protocol. Responses on other paths are not checked against it.
func protocol(path string) bool {
	for _, prefix := range []string{"/v2/", "/oauth/v2/", "/oauth/cf-eu10/v2/"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}

	return false
}
