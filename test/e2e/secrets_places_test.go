package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/test/harness"
)

// readable returns all texts that operators can read, by place: columns as stored, responses, spans, metrics and pages.
// parameters contains the values of the parameters in endpoint paths. Endpoints with other parameters are left out.
func (e env) readable(databases []searched, collected *traces, simulators string, parameters map[string]string) map[string]string {
	e.Helper()

	texts := map[string]string{}
	get := func(path string) {
		reply, err := e.Do(harness.Call{Method: http.MethodGet, Path: path})
		if err != nil || reply.Status != http.StatusOK {
			e.Fatalf("GET %s: %d, %v", path, reply.Status, err)
		}

		texts["GET "+path] = reply.Raw
	}

	for _, path := range readablePaths(brokerRows(), parameters) {
		get(path)
	}

	var list operatorapi.OperationList

	e.decode(texts["GET /operations"], &list)

	for _, operation := range list.Data {
		get("/operations/" + operation.ID)

		texts["explanation of "+operation.ID] = e.explain(operation.ID)
	}

	for _, path := range readablePaths(sharedRows(), nil) {
		texts["Provisioner: GET "+path] = e.fromProvisioner(harness.Call{Method: http.MethodGet, Path: path})
	}

	var runtimes operatorapi.RuntimeList

	e.decode(texts["GET /runtimes"], &runtimes)

	for _, query := range append(statusQueries(runtimes), provisionerQuery) {
		texts["Provisioner: "+query] = e.fromProvisioner(harness.Call{
			Method: http.MethodPost, Path: "/graphql", Header: http.Header{"Tenant": {"organization-1"}}, Body: graphQLBody(query),
		})
	}

	texts["export of the audit log"] = e.ebctl("audit", "export")

	collected.mutex.Lock()
	for _, span := range collected.spans {
		texts["spans"] += prototext.Format(span)
	}
	collected.mutex.Unlock()

	families, err := e.services.Broker.Metrics.Gather()
	if err != nil {
		e.Fatal(err)
	}

	for _, family := range families {
		texts["metrics"] += prototext.Format(family)
	}

	request, err := http.NewRequestWithContext(e.Context(), http.MethodGet, simulators+"/simulators", http.NoBody)
	if err != nil {
		e.Fatal(err)
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		e.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()

	page, err := io.ReadAll(response.Body)
	if err != nil {
		e.Fatal(err)
	}

	texts["page of the simulators"] = string(page)

	for _, database := range databases {
		database.read(texts)
	}

	for place, text := range texts {
		if text == "" {
			e.Errorf("%s is empty", place)
		}
	}

	return texts
}

// provisionerQuery selects the messages of the Provisioner's runtimes and operations.
const provisionerQuery = `{ runtimes { data { id lastOperation { message lastError { errMessage } } } } operations { data { message lastError { errMessage } } } }`

// statusQueries returns a query for each runtime that selects everything except for kubeconfigs that can contain secrets.
func statusQueries(list operatorapi.RuntimeList) []string {
	var queries []string

	for _, runtime := range list.Data {
		queries = append(queries, fmt.Sprintf(`{ runtimeStatus(id: %q) { lastOperationStatus { message lastError { errMessage } errors { message } }
			runtimeConfiguration { kymaConfig { configuration { key value } components { component configuration { key value } } } } } }`, runtime.RuntimeID))
	}

	return queries
}

// fromProvisioner sends a call to the Provisioner, which requires no credentials, and returns the response.
func (e env) fromProvisioner(call harness.Call) string {
	e.Helper()

	reply, err := harness.Endpoint{URL: e.services.Proxy.URL}.Do(call)
	if err != nil || reply.Status != http.StatusOK || strings.HasPrefix(reply.Raw, `{"errors"`) {
		e.Fatalf("%s %s: %d %s, %v", call.Method, call.Path, reply.Status, reply.Raw, err)
	}

	return reply.Raw
}

// readablePaths returns the paths of all endpoints that accept GET, with the given values for their parameters. It leaves out
// endpoints with other parameters, and endpoints that return credentials.
func readablePaths(rows []roleRow, parameters map[string]string) []string {
	var paths []string

	for _, row := range rows {
		path, reads := strings.CutPrefix(row.name, "GET ")
		for name, value := range parameters {
			path = strings.ReplaceAll(path, "{"+name+"}", value)
		}

		if reads && !strings.ContainsAny(path, "{}") && !strings.Contains(path, "/service_bindings/") {
			paths = append(paths, path)
		}
	}

	return paths
}

// read adds the stored values of all columns to texts, by service and table.
func (s searched) read(texts map[string]string) {
	s.Helper()

	for _, table := range s.tables() {
		rows, err := s.db.Reader().QueryxContext(s.Context(), `SELECT * FROM `+table)
		if err != nil {
			s.Fatal(err)
		}

		for rows.Next() {
			row := map[string]any{}
			if err := rows.MapScan(row); err != nil {
				s.Fatal(err)
			}

			for column, value := range row {
				texts[s.service+" "+table+"."+column] += fmt.Sprintf("%s\n", value)
			}
		}

		if err := rows.Close(); err != nil {
			s.Fatal(err)
		}
	}
}
