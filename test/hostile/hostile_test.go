package hostile_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"
	"sigs.k8s.io/yaml"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// maxRefusal is the maximum size of the response to a refused request, in bytes.
const maxRefusal = 64 << 10

// services consists of a broker without workers, which has one instance, and a Provisioner.
type services struct {
	testing.TB
	harness.Endpoint

	provisioner harness.Endpoint
	databases   []*sql.DB
}

// known is the ID of the instance.
const known = "known"

func start(t testing.TB) *services {
	t.Helper()

	s := &services{TB: t}

	environment := harness.Start(t, harness.Options{Configure: func(broker *broker.Config, provisioner *provisioner.Config) {
		broker.Engine.Workers = 0
		s.databases = []*sql.DB{s.open(broker.Database.Path), s.open(provisioner.Database.Path)}
	}})

	s.Endpoint = environment.Broker.Endpoint
	s.provisioner = harness.Endpoint{URL: environment.Settings.Provisioner.URL}

	order, err := json.Marshal(harness.Order(harness.PlanAWS))
	if err != nil {
		t.Fatal(err)
	}

	got, err := s.Do(harness.Call{Method: http.MethodPut, Path: harness.InstancePath(known) + harness.Incomplete, Body: string(order)})
	if err != nil || got.Status != http.StatusAccepted {
		t.Fatalf("the instance was not accepted: %d %s %v", got.Status, got.Raw, err)
	}

	return s
}

// open opens a database for reading. A read-only connection never blocks the services.
func (s *services) open(path string) *sql.DB {
	s.Helper()

	database, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		s.Fatal(err)
	}

	s.Cleanup(func() { database.Close() })

	return database
}

// rows counts the rows of both services, except the audit log, which records refusals.
func (s *services) rows() string {
	s.Helper()

	var all strings.Builder

	for i, tables := range [][]string{{"instances", "operations", "bindings"}, {"runtimes", "operations"}} {
		for _, table := range tables {
			var count int
			if err := s.databases[i].QueryRowContext(s.Context(), `SELECT count(*) FROM `+table).Scan(&count); err != nil {
				s.Fatal(err)
			}

			fmt.Fprintf(&all, "%s: %d ", table, count)
		}
	}

	return all.String()
}

// refused sends a hostile call and returns the response. It fails the test on a server error or an oversized response. Callers check
// that the call was refused.
func (s *services) refused(name string, endpoint harness.Endpoint, call harness.Call) harness.Reply {
	s.Helper()

	got, err := endpoint.Do(call)
	if err != nil {
		s.Fatalf("%s: %s %.100s: %v", name, call.Method, call.Path, err)
	}

	if got.Status >= http.StatusInternalServerError {
		s.Errorf("%s: %s %.100s: status %d: %.300s", name, call.Method, call.Path, got.Status, got.Raw)
	}

	if len(got.Raw) > maxRefusal && (call.Method != http.MethodGet || got.Status != http.StatusOK) { // the catalog is larger
		s.Errorf("%s: %s %.100s: the response has %d bytes", name, call.Method, call.Path, len(got.Raw))
	}

	for header, sent := range got.Header {
		if len(sent[0]) > 1000 {
			s.Errorf("%s: %s %.100s: the %s header has %d bytes", name, call.Method, call.Path, header, len(sent[0]))
		}
	}

	return got
}

// route is an HTTP method and a path with variables in braces.
type route struct{ method, path string }

// routes returns the routes of the Open Service Broker API, and the routes of the operator API, which it reads from the OpenAPI
// description.
func routes(t testing.TB) []route {
	t.Helper()

	var all []route

	const (
		instance = "/service_instances/{instance_id}"
		binding  = instance + "/service_bindings/{binding_id}"
	)

	for _, prefix := range []string{"/v2", "/oauth/v2", "/oauth/{region}/v2"} {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodPost} {
			for _, path := range []string{"/catalog", instance, instance + "/last_operation", instance + "/validate", binding, binding + "/last_operation"} {
				all = append(all, route{method, prefix + path})
			}
		}
	}

	var description struct {
		Paths map[string]map[string]any `json:"paths"`
	}

	if err := yaml.Unmarshal(operatorapi.Description, &description); err != nil || len(description.Paths) < 5 {
		t.Fatalf("reading the operator API: %d paths, %v", len(description.Paths), err)
	}

	for _, path := range slices.Sorted(maps.Keys(description.Paths)) {
		for method := range description.Paths[path] {
			if method != "parameters" {
				all = append(all, route{strings.ToUpper(method), path})
			}
		}
	}

	return all
}

// fill replaces each variable in a path with value.
func fill(path, value string) string {
	var filled strings.Builder

	for rest := path; ; {
		before, after, found := strings.Cut(rest, "{")
		filled.WriteString(before)

		if !found {
			return filled.String()
		}

		filled.WriteString(value)

		_, rest, _ = strings.Cut(after, "}")
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()

	s := start(t)
	before := s.rows()
	sent := 0

	for _, route := range routes(t) {
		// The routes below /oauth have the same handlers, so the test varies only their IDs and regions, not their bodies.
		if route.method != http.MethodGet && route.method != http.MethodDelete && !strings.HasPrefix(route.path, "/oauth") {
			for name, body := range bodies() {
				got := s.refused(name, s.Endpoint, harness.Call{
					Method: route.method, Path: strings.Replace(fill(route.path, known), "known/adminkubeconfig", "x/adminkubeconfig", 1) + harness.Incomplete, Body: body,
				})
				if sent++; got.Status < http.StatusBadRequest && got.Body["valid"] != false {
					t.Errorf("%s: %s %s: status %d: %.300s", name, route.method, route.path, got.Status, got.Raw)
				}
			}
		}

		for name, segment := range segments() {
			call := harness.Call{Method: route.method, Path: fill(route.path, segment) + harness.Incomplete + "&service_id=" + segment + "&plan_id=" + segment}
			if len(call.Path) > 60_000 {
				continue // net/http refuses longer headers
			}

			got := s.refused(name, s.Endpoint, call)
			// A request for an account without data is not an error, and accounts from earlier versions may have such IDs.
			if sent++; got.Status < http.StatusBadRequest && strings.Contains(route.path, "{") && route.path != "/accounts/{account_id}" {
				t.Errorf("%s: %s %s: status %d: %.300s", name, route.method, route.path, got.Status, got.Raw)
			}
		}
	}

	for _, header := range []string{
		harness.VersionHeader, "X-Broker-API-Originating-Identity", "X-Broker-API-Request-Identity", "Content-Type", "Authorization", "If-None-Match", "Traceparent",
	} {
		for _, value := range []string{strings.Repeat("x", 50_000), "Basic " + strings.Repeat("eHg6", 10_000), strings.Repeat("[", 40_000), strings.Repeat("9", 40_000)} {
			s.refused(header, s.Endpoint, harness.Call{
				Method: http.MethodPut, Path: harness.InstancePath("new") + harness.Incomplete, Body: "{}", Header: http.Header{header: {value}},
			})

			sent++
		}
	}

	if after := s.rows(); after != before {
		t.Errorf("hostile requests changed rows: before %s, after %s", before, after)
	}

	if sent < 2000 {
		t.Errorf("only %d requests were sent", sent)
	}
}

// TestProvisionerRoutes sends the hostile requests to the operator API of the Provisioner.
func TestProvisionerRoutes(t *testing.T) {
	t.Parallel()

	s := start(t)
	endpoint := harness.Endpoint{URL: strings.TrimSuffix(s.provisioner.URL, "/graphql")}
	before := s.rows()
	sent := map[string]int{}

	for _, route := range routes(t) {
		if strings.Contains(route.path, "/v2/") {
			continue
		}

		if route.method != http.MethodGet {
			for name, body := range bodies() {
				got := s.refused(name, endpoint, harness.Call{Method: route.method, Path: fill(route.path, known), Body: body})
				if sent[route.method]++; got.Status < http.StatusBadRequest {
					t.Errorf("%s: %s %s: status %d: %.300s", name, route.method, route.path, got.Status, got.Raw)
				}
			}
		}

		for name, segment := range segments() {
			call := harness.Call{Method: route.method, Path: fill(route.path, segment) + "?instance_id=" + segment + "&cursor=" + segment}
			if len(call.Path) > 60_000 {
				continue // net/http refuses longer headers
			}

			got := s.refused(name, endpoint, call)
			if sent[route.method]++; got.Status < http.StatusBadRequest && strings.Contains(route.path, "{") && route.path != "/accounts/{account_id}" {
				t.Errorf("%s: %s %s: status %d: %.300s", name, route.method, route.path, got.Status, got.Raw)
			}
		}
	}

	if after := s.rows(); after != before {
		t.Errorf("hostile requests changed rows: before %s, after %s", before, after)
	}

	if sent[http.MethodPost] < 500 || sent[http.MethodGet] < 50 {
		t.Errorf("too few requests were sent: %v", sent)
	}
}

// graphQL returns the HTTP call for a GraphQL query.
func graphQL(t testing.TB, query string) harness.Call {
	t.Helper()

	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}

	return harness.Call{Method: http.MethodPost, Body: string(body), Header: http.Header{"Tenant": {"acme"}}}
}

func TestGraphQLFields(t *testing.T) {
	t.Parallel()

	s := start(t)
	before := s.rows()

	const fields = `fields { name args { name } }`

	reply, err := s.provisioner.Do(graphQL(t, `{ __schema { query: queryType { `+fields+` } mutation: mutationType { `+fields+` } } }`))
	if err != nil {
		t.Fatal(err)
	}

	var schema struct {
		Data struct {
			Schema map[string]struct {
				Fields []struct {
					Name string
					Args []struct{ Name string }
				}
			} `json:"__schema"`
		}
	}

	if err := json.Unmarshal([]byte(reply.Raw), &schema); err != nil || len(schema.Data.Schema) != 2 {
		t.Fatalf("reading the schema: %v: %.300s", err, reply.Raw)
	}

	for operation, kind := range schema.Data.Schema {
		for _, field := range kind.Fields {
			arguments := func(value string) string {
				var all []string
				for _, argument := range field.Args {
					all = append(all, argument.Name+": "+value)
				}

				return "(" + strings.Join(all, ", ") + ")"
			}

			for name, literal := range literals() {
				for _, selection := range []string{"", " { __typename }"} {
					s.refusedQuery(field.Name+" with "+name, operation+" { "+field.Name+arguments(literal)+selection+" }")
				}
			}

			for name, selection := range selections() {
				s.refusedQuery(field.Name+" selecting "+name, operation+" { "+field.Name+arguments(`"x\u200b"`)+" "+selection+" }")
			}
		}
	}

	if after := s.rows(); after != before {
		t.Errorf("hostile requests changed rows: before %s, after %s", before, after)
	}
}

// refusedQuery sends a GraphQL request that must be refused.
func (s *services) refusedQuery(name, query string) {
	s.Helper()

	got := s.refused(name, s.provisioner, graphQL(s, query))
	if strings.Contains(got.Raw, `"error_code":500`) || strings.Contains(got.Raw, "internal error") {
		s.Errorf("%s: an internal error: %.300s", name, got.Raw)
	}

	if !strings.Contains(got.Raw, `"errors"`) && !strings.Contains(query, "null") {
		s.Errorf("%s: the request was not refused: %.300s", name, got.Raw)
	}
}
