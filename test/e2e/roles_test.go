package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/secret"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// roleRow is an endpoint of the broker or the Provisioner, or a GraphQL field of the Provisioner, with the roles that may use it.
type roleRow struct {
	// name is the method and the path template of an endpoint, or the type and the name of a field.
	name  string
	query string // the query for a field
	roles string
}

// Sets of roles in the table. At the broker, a platform has the osb role; at the Provisioner, the broker has it.
const (
	anyone        = " none osb viewer operator admin "
	reading       = " viewer operator admin "
	operating     = " operator admin "
	admin         = " admin "
	ordering      = " osb "
	graphQL       = " osb operator admin "
	clusterOwners = " osb admin "
)

func sharedRows() []roleRow {
	return []roleRow{
		{name: "GET /runtimes", roles: reading},
		{name: "GET /runtimes/{instance_id}", roles: reading},
		{name: "GET /operations", roles: reading},
		{name: "GET /operations/{operation_id}", roles: reading},
		{name: "POST /operations/{operation_id}/cancel", roles: operating},
		{name: "POST /operations/{operation_id}/retry", roles: operating},
		{name: "POST /operations/{operation_id}/skip", roles: operating},
		{name: "GET /audit", roles: admin},
		{name: "GET /audit/{entry_id}", roles: admin},
		{name: "GET /auditchain", roles: admin},
		{name: "GET /accounts/{account_id}", roles: admin},
		{name: "POST /accounts/{account_id}/erase", roles: admin},
		{name: "GET /differences", roles: operating},
		{name: "POST /differences/restore", roles: admin},
		{name: "GET /status", roles: reading},
		{name: "GET /processes", roles: reading},
		{name: "GET /configuration", roles: admin},
		{name: "GET /openapi.yaml", roles: anyone},
	}
}

func brokerRows() []roleRow {
	return append(sharedRows(),
		roleRow{name: "POST /runtimes/{instance_id}/adminkubeconfig", roles: admin},
		roleRow{name: "GET /runtimes/{instance_id}/bindings", roles: reading},
		roleRow{name: "POST /runtimes/{instance_id}/grant", roles: admin},
		roleRow{name: "POST /runtimes/{instance_id}/revoke", roles: admin},
		roleRow{name: "POST /runtimes/{instance_id}/move", roles: admin},
		roleRow{name: "POST /runtimes/{instance_id}/protect", roles: operating},
		roleRow{name: "POST /runtimes/{instance_id}/unprotect", roles: operating},
		roleRow{name: "POST /runtimes/{instance_id}/upgradeTime", roles: operating},
		roleRow{name: "POST /runtimes/{instance_id}/label", roles: operating},
		roleRow{name: "POST /runtimes/{instance_id}/upgradeKyma", roles: operating},
		roleRow{name: "POST /runtimes/{instance_id}/upgradeCluster", roles: operating},
		roleRow{name: "POST /runtimes/{instance_id}/renewCredentials", roles: operating},
		roleRow{name: "GET /credentials", roles: reading},
		roleRow{name: "POST /shoots/{shoot_name}/adopt", roles: admin},
		roleRow{name: "POST /upgrade/kyma", roles: operating},
		roleRow{name: "POST /upgrade/cluster", roles: operating},
		roleRow{name: "POST /upgrade/kyma/plan", roles: operating},
		roleRow{name: "POST /upgrade/cluster/plan", roles: operating},
		roleRow{name: "GET /orchestrations", roles: reading},
		roleRow{name: "GET /orchestrations/{orchestration_id}", roles: reading},
		roleRow{name: "GET /orchestrations/{orchestration_id}/operations", roles: reading},
		roleRow{name: "GET /orchestrations/{orchestration_id}/operations/{operation_id}", roles: reading},
		roleRow{name: "POST /orchestrations/{orchestration_id}/apply", roles: operating},
		roleRow{name: "PUT /orchestrations/{orchestration_id}/cancel", roles: operating},
		roleRow{name: "PUT /orchestrations/{orchestration_id}/pause", roles: operating},
		roleRow{name: "PUT /orchestrations/{orchestration_id}/resume", roles: operating},
		roleRow{name: "POST /orchestrations/{orchestration_id}/retry", roles: operating},
		roleRow{name: "POST /orchestrations/{orchestration_id}/undo", roles: operating},
		roleRow{name: "GET /platforms", roles: admin},
		roleRow{name: "GET /events", roles: reading},
		roleRow{name: "GET /webhooks", roles: operating},
		roleRow{name: "POST /webhooks", roles: admin},
		roleRow{name: "GET /webhooks/{webhook_id}", roles: operating},
		roleRow{name: "DELETE /webhooks/{webhook_id}", roles: admin},
		roleRow{name: "GET /webhooks/{webhook_id}/deliveries", roles: operating},
		roleRow{name: "POST /webhooks/{webhook_id}/enable", roles: operating},
		roleRow{name: "POST /webhooks/{webhook_id}/replay", roles: operating},
		roleRow{name: "POST /webhooks/{webhook_id}/rotate", roles: admin},
		roleRow{name: "POST /webhooks/{webhook_id}/test", roles: operating},
		roleRow{name: "GET /jobs", roles: reading},
		roleRow{name: "POST /jobs/{name}/run", roles: operating},
		roleRow{name: "GET /quotas", roles: reading},
		roleRow{name: "GET /catalog", roles: reading},
		roleRow{name: "PUT /expire/service_instance/{instance_id}", roles: operating},
		roleRow{name: "GET /cloudaccounts", roles: reading},
		roleRow{name: "POST /cloudaccounts/{cloud_account}/release", roles: operating},
		roleRow{name: "POST /cloudaccounts/{cloud_account}/cleanup", roles: operating},
		roleRow{name: "POST /leftovers/{leftover_id}/cleanup", roles: operating},
		roleRow{name: "POST /leftovers/{leftover_id}/confirm", roles: operating},
		roleRow{name: "GET /kubeconfig/{instance_id}", roles: anyone},
		roleRow{name: "GET /v2/catalog", roles: ordering},
		roleRow{name: "PUT /v2/service_instances/{instance_id}", roles: ordering},
		roleRow{name: "GET /v2/service_instances/{instance_id}", roles: ordering},
		roleRow{name: "PATCH /v2/service_instances/{instance_id}", roles: ordering},
		roleRow{name: "DELETE /v2/service_instances/{instance_id}", roles: ordering},
		roleRow{name: "GET /v2/service_instances/{instance_id}/last_operation", roles: ordering},
		roleRow{name: "POST /v2/service_instances/{instance_id}/validate", roles: ordering},
		roleRow{name: "PUT /v2/service_instances/{instance_id}/service_bindings/b", roles: ordering},
		roleRow{name: "GET /v2/service_instances/{instance_id}/service_bindings/b", roles: ordering},
		roleRow{name: "DELETE /v2/service_instances/{instance_id}/service_bindings/b", roles: ordering},
		roleRow{name: "GET /v2/service_instances/{instance_id}/service_bindings/b/last_operation", roles: ordering},
	)
}

func provisionerRows() []roleRow {
	const order = `runtimeInput: {name: "r"}, clusterConfig: {gardenerConfig: {name: "c", kubernetesVersion: "1", provider: "aws", targetSecret: "s", region: "r",
		machineType: "m", workerCidr: "", autoScalerMin: 1, autoScalerMax: 1, maxSurge: 1, maxUnavailable: 0, providerSpecificConfig: {}}}`

	return append(sharedRows(),
		roleRow{name: "GET /", roles: graphQL},
		roleRow{name: "Mutation provisionRuntime", query: `mutation { provisionRuntime(config: {` + order + `}) { id } }`, roles: clusterOwners},
		roleRow{name: "Mutation upgradeRuntime", query: `mutation { upgradeRuntime(id: "x", config: {kymaConfig: {version: "1", components: []}}) { id } }`, roles: clusterOwners},
		roleRow{name: "Mutation deprovisionRuntime", query: `mutation { deprovisionRuntime(id: "x") }`, roles: clusterOwners},
		roleRow{name: "Mutation upgradeShoot", query: `mutation { upgradeShoot(id: "x", config: {gardenerConfig: {}, administrators: ["me"]}) { id } }`, roles: clusterOwners},
		roleRow{name: "Mutation adoptShoot", query: `mutation { adoptShoot(config: {shootName: "x"}) { runtimeID } }`, roles: clusterOwners},
		roleRow{name: "Mutation hibernateRuntime", query: `mutation { hibernateRuntime(id: "x") { id } }`, roles: clusterOwners},
		roleRow{name: "Mutation wakeUpRuntime", query: `mutation { wakeUpRuntime(id: "x") { id } }`, roles: clusterOwners},
		roleRow{name: "Mutation rollBackUpgradeOperation", query: `mutation { rollBackUpgradeOperation(id: "x") { runtimeConfiguration { kubeconfig } } }`, roles: clusterOwners},
		roleRow{name: "Mutation reconnectRuntimeAgent", query: `mutation { reconnectRuntimeAgent(id: "x") }`, roles: clusterOwners},
		roleRow{name: "RuntimeConfig kubeconfig", query: `{ runtimeStatus(id: "RUNTIME") { runtimeConfiguration { kubeconfig } } }`, roles: clusterOwners},
		roleRow{name: "Query runtimeStatus", query: `{ runtimeStatus(id: "RUNTIME") { runtimeConfiguration { clusterConfig { name } } } }`, roles: graphQL},
		roleRow{name: "Query runtimeOperationStatus", query: `{ runtimeOperationStatus(id: "x") { id } }`, roles: graphQL},
		roleRow{name: "Query runtimes", query: `{ runtimes { totalCount } }`, roles: graphQL},
		roleRow{name: "Query operations", query: `{ operations { totalCount } }`, roles: graphQL},
		roleRow{name: "Query operationChanges", query: `{ operationChanges { cursor } }`, roles: graphQL},
	)
}

// TestRoles sends a request to every endpoint and field of both services with every role. A request counts as allowed unless the
// response is 401 or 403, because the objects in most requests do not exist.
func TestRoles(t *testing.T) {
	t.Parallel()

	const users = "osb:secret:osb,viewer:secret:viewer,operator:secret:operator,admin:secret:admin"

	e := start(t, harness.SQLite, 0, func(broker *broker.Config, provisioner *provisioner.Config) {
		broker.AuthBasicUsers = secret.String(users + "," + harness.User + ":" + harness.Password + ":osb+admin")
		broker.Provisioner.User, broker.Provisioner.Password = "osb", "secret"
		provisioner.AuthBasicUsers = users
	})
	e.Create("i1", harness.PlanAWS)
	e.WantSucceeded("i1")

	var listed operatorapi.RuntimeList
	if err := json.Unmarshal([]byte(e.Send(http.MethodGet, "/runtimes", nil, http.StatusOK).Raw), &listed); err != nil {
		t.Fatal(err)
	}

	runtimeID, tenant := listed.Data[0].RuntimeID, "organization-1"
	wantComplete(t, "broker", brokerRows(), nil)
	wantComplete(t, "provisioner", provisionerRows(), fieldsOf(t, e, tenant))

	for service, rows := range map[string][]roleRow{e.URL: brokerRows(), e.services.Proxy.URL: provisionerRows()} {
		for _, row := range rows {
			for role := range strings.FieldsSeq(anyone) {
				endpoint := harness.Endpoint{URL: service, User: role, Password: "secret"}

				call := harness.Call{Header: http.Header{"Tenant": {tenant}}}
				if role == "none" {
					call.Header["Authorization"] = nil
				}

				if row.query == "" {
					call.Method, call.Path, _ = strings.Cut(row.name, " ")
					call.Path = strings.NewReplacer("{instance_id}", "x", "{operation_id}", "x", "{entry_id}", "x", "{account_id}", "x").Replace(call.Path)
				} else {
					call.Method, call.Path, call.Body = http.MethodPost, "/graphql", graphQLBody(strings.ReplaceAll(row.query, "RUNTIME", runtimeID))
				}

				reply, err := endpoint.Do(call)
				if err != nil {
					t.Fatal(err)
				}

				denied := reply.Status == http.StatusUnauthorized || reply.Status == http.StatusForbidden ||
					strings.Contains(reply.Raw, `"error_code":403`)
				if allowed := strings.Contains(row.roles, " "+role+" "); denied == allowed {
					t.Errorf("%s as %s: allowed %t, want %t: %d %s", row.name, role, !denied, allowed, reply.Status, reply.Raw)
				}

				if role != "osb" && role != "admin" && strings.Contains(reply.Raw, "client-key-data") {
					t.Errorf("%s as %s returns credentials of a cluster", row.name, role)
				}
			}
		}
	}
}

func graphQLBody(query string) string { return fmt.Sprintf(`{"query": %q}`, query) }

// fieldsOf returns the fields of the types Query and Mutation from the schema that the Provisioner serves.
func fieldsOf(t *testing.T, e env, tenant string) []string {
	t.Helper()

	reply, err := harness.Endpoint{URL: e.services.Proxy.URL, User: "admin", Password: "secret"}.Do(harness.Call{
		Method: http.MethodPost, Path: "/graphql", Header: http.Header{"Tenant": {tenant}},
		Body: graphQLBody(`{ __schema { queryType { name fields { name } } mutationType { name fields { name } } } }`),
	})
	if err != nil {
		t.Fatal(err)
	}

	var schema struct {
		Data struct {
			Schema map[string]struct {
				Name   string
				Fields []struct{ Name string }
			} `json:"__schema"`
		}
	}
	if err := json.Unmarshal([]byte(reply.Raw), &schema); err != nil {
		t.Fatal(err)
	}

	var names []string

	for _, object := range schema.Data.Schema {
		for _, field := range object.Fields {
			names = append(names, object.Name+" "+field.Name)
		}
	}

	return names
}

// wantComplete checks that the rows contain all operations in the OpenAPI description of the service's operator API, and all GraphQL
// fields.
func wantComplete(t *testing.T, service string, rows []roleRow, fields []string) {
	t.Helper()

	var description struct {
		Paths map[string]map[string]struct {
			Service string `json:"x-service"`
		}
	}
	if err := yaml.Unmarshal(operatorapi.Description, &description); err != nil {
		t.Fatal(err)
	}

	wanted := slices.Clone(fields)

	for path, methods := range description.Paths {
		for method := range maps.Keys(methods) {
			if owner := methods[method].Service; owner == "" || owner == service {
				wanted = append(wanted, fmt.Sprintf("%s %s", strings.ToUpper(method), path))
			}
		}
	}

	for _, name := range wanted {
		if !slices.ContainsFunc(rows, func(row roleRow) bool { return row.name == name }) {
			t.Errorf("the table lacks %[2]s: add it to %[1]sRows or, if both services have it, to sharedRows, with the roles that may use it", service, name)
		}
	}

	if len(wanted) < 10 {
		t.Errorf("the %s has only %d endpoints and fields: %q", service, len(wanted), wanted)
	}
}

// TestKubeconfigNeedsNoProvisioner checks that the broker returns users' kubeconfigs without calling the Provisioner.
func TestKubeconfigNeedsNoProvisioner(t *testing.T) {
	t.Parallel()

	e := start(t, harness.SQLite, 0)
	e.Create("i1", harness.PlanAWS)
	e.WantSucceeded("i1")

	e.services.Proxy.Inject(harness.Match{}, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })

	anonymous := http.Header{"Authorization": nil}

	found, err := e.Do(harness.Call{Method: http.MethodGet, Path: "/kubeconfig/i1", Header: anonymous})
	if err != nil || found.Status != http.StatusOK || !strings.Contains(found.Raw, "server: https://127.0.0.1:") ||
		!strings.Contains(found.Raw, "certificate-authority-data: ") || strings.Contains(found.Raw, "client-key-data") {
		t.Errorf("got %d %s, %v", found.Status, found.Raw, err)
	}

	missing, err := e.Do(harness.Call{Method: http.MethodGet, Path: "/kubeconfig/i2", Header: anonymous})
	if err != nil || missing.Status != http.StatusNotFound {
		t.Errorf("got %d %s, %v", missing.Status, missing.Raw, err)
	}
}
