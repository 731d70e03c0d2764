package osb

import (
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/test/harness"
)

// fuzzTarget is a broker that accepts requests but executes no operations, so that only requests change its rows. It has one
// instance, whose creation is pending.
type fuzzTarget struct {
	harness.Endpoint

	instance string
	database *sql.DB
	tables   []string

	// seeds counts the inputs added to the target, and inputs counts the inputs that ran.
	seeds  int
	inputs atomic.Int64
	// responses counts the checked responses.
	responses atomic.Int64
}

func (target *fuzzTarget) add(f *testing.F, input ...any) {
	f.Helper()

	target.seeds++
	f.Add(input...)
}

// wantResponses fails the target if its seeds led to fewer than least checked responses, because a seed that sends no request
// tests nothing. It must be called after the seeds have run. During fuzzing it checks nothing: worker processes run the
// inputs, and this process cannot count them.
func (target *fuzzTarget) wantResponses(f *testing.F, least int64) {
	f.Helper()

	if target.inputs.Load() < int64(target.seeds) {
		return // fuzzing, or -run selects single seeds
	}

	if got := target.responses.Load(); got < least {
		f.Errorf("%d seeds led to %d responses, want at least %d", target.seeds, got, least)
	}
}

// newTarget starts the broker of a fuzz target and orders its instance.
func newTarget(f *testing.F) *fuzzTarget {
	f.Helper()

	settings := harness.BrokerSettings(harness.SQLite(f, "broker"))
	configure(f, &settings, "APP_WORKERS=0")
	settings.Provisioner.URL = "http://127.0.0.1:1/graphql" // never called, because there are no workers

	service := harness.StartBroker(f, settings, logging.Discard())

	// A read-only connection never blocks the broker.
	database, err := sql.Open("sqlite", "file:"+settings.Database.Path+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		f.Fatal(err)
	}

	f.Cleanup(func() { database.Close() })

	target := &fuzzTarget{Endpoint: service.Endpoint, instance: "known", database: database}
	target.tables = target.resources(f)

	order := encode(fields{
		"service_id": harness.ServiceID, "plan_id": harness.PlanAWS, "organization_guid": "o", "space_guid": "s", "parameters": fields{},
	})

	got, err := send(target.Endpoint, harness.Call{Method: http.MethodPut, Path: harness.InstancePath(target.instance) + harness.Incomplete, Body: order})
	if err != nil || got.Status != http.StatusAccepted {
		f.Fatalf("the first order: %d %s, %v", got.Status, got.Raw, err)
	}

	return target
}

// resources returns the names of the tables with instances, bindings and operations.
func (target *fuzzTarget) resources(t testing.TB) []string {
	t.Helper()

	rows, err := target.database.QueryContext(t.Context(), `SELECT name FROM sqlite_master WHERE type = 'table'`)
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

// state formats the row count of each table and the state of the known instance.
func (target *fuzzTarget) state(t testing.TB) string {
	t.Helper()

	var all strings.Builder

	for _, table := range target.tables {
		var count int
		if err := target.database.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table).Scan(&count); err != nil {
			t.Fatal(err)
		}

		fmt.Fprintf(&all, "%s: %d rows\n", table, count)
	}

	var updated, states string

	err := target.database.QueryRowContext(t.Context(), `SELECT coalesce(max(updated_at), ''),
		coalesce((SELECT group_concat(state) FROM operations WHERE instance_id = ?), '') FROM instances WHERE id = ?`,
		target.instance, target.instance).Scan(&updated, &states)
	if err != nil {
		t.Fatal(err)
	}

	return all.String() + "the known instance: " + updated + " " + states
}

// check sends a call and checks its response. The response must arrive in time, conform to the protocol and not be a server
// error. If the broker rejects the call, no row may change.
func (target *fuzzTarget) check(t *testing.T, call harness.Call) {
	t.Helper()

	before := target.state(t)
	sent := time.Now()

	got, err := send(target.Endpoint, call)
	if err != nil {
		if _, unsendable := target.Request(t.Context(), call); unsendable != nil || strings.Contains(err.Error(), "invalid header field") {
			t.Skip("HTTP clients cannot send the request")
		}

		t.Fatalf("%s %q: %v", call.Method, call.Path, err)
	}

	target.responses.Add(1)

	if got.Status >= http.StatusInternalServerError {
		t.Errorf("%s %q with %q: status %d: %s", call.Method, call.Path, call.Body, got.Status, got.Raw)
	}

	if took := time.Since(sent); took > responseLimit {
		t.Errorf("%s %q: the response took %s", call.Method, call.Path, took)
	}

	if protocol(call.Path) {
		checkResponse(t, call, got)
	}

	if after := target.state(t); got.Status >= http.StatusBadRequest && before != after {
		t.Errorf("%s %q with %q was rejected with %d %s, but changed something:\nbefore %s\nafter  %s",
			call.Method, call.Path, call.Body, got.Status, got.Raw, before, after)
	}
}

// protocol reports whether the Open Service Broker API defines a response for the path.
func protocol(path string) bool {
	for _, prefix := range []string{"/v2/", "/oauth/v2/", "/oauth/cf-eu10/v2/"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}

	return false
}
