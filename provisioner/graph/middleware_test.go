package graph_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// refusals is a Recorder that stores the entries in memory.
type refusals []auditlog.Entry

func (r *refusals) Refused(_ context.Context, entry auditlog.Entry) { *r = append(*r, entry) }

func TestRefusedMutationsAreRecorded(t *testing.T) {
	unknown := failure.New(failure.NotFound, "there is no such runtime").WithReason(failure.ReasonNotFound, failure.ComponentProvisioner)

	for name, test := range map[string]struct {
		reason  string
		role    auth.Role
		request exchange
		want    refusals
	}{
		"Mutation": {
			"a rejected mutation is recorded", auth.RoleOSB, asTenant(`mutation { deprovisionRuntime(id: "r1") }`),
			refusals{{
				Action: "deprovisionRuntime", InstanceID: "r1", Status: http.StatusNotFound, Code: failure.ReasonNotFound,
				Account: "acme", After: auditlog.Fields{"tenant": "acme"},
			}},
		},
		"No tenant": {
			"a rejected mutation without a tenant is recorded", auth.RoleOSB,
			exchange{query: `mutation { deprovisionRuntime(id: "r1") }`},
			refusals{{Action: "deprovisionRuntime", InstanceID: "r1", Status: http.StatusBadRequest}},
		},
		"Query": {"rejected queries are not recorded", auth.RoleOSB, asTenant(`{ runtimeOperationStatus(id: "o1") { id } }`), nil},
		"Operator's mutation": {
			"a mutation without permission is recorded", auth.RoleOperator, asTenant(`mutation { deprovisionRuntime(id: "r1") }`),
			refusals{{
				Action: "deprovisionRuntime", InstanceID: "r1", Status: http.StatusForbidden, Code: "err_provisioner_forbidden",
				Account: "acme", After: auditlog.Fields{"tenant": "acme"},
			}},
		},
		"Operator's kubeconfig": {
			"a denied kubeconfig is recorded like one that the broker denies", auth.RoleOperator,
			asTenant(`{ a: runtimeStatus(id: "r1") { b: runtimeConfiguration { c: kubeconfig } } }`),
			refusals{{
				Action: auditlog.ActionAdminKubeconfig, InstanceID: "r1", Status: http.StatusForbidden, Code: "err_provisioner_forbidden",
				Account: "acme", After: auditlog.Fields{"tenant": "acme"},
			}},
		},
	} {
		var recorded refusals

		server := httptest.NewServer(as(test.role, graph.NewHandler(graph.Options{
			Service: runtimes{
				deprovision: func(orders.Caller, string) (string, error) { return "", unknown },
				operationStatus: func(orders.Caller, string) (operation.Status, error) {
					return operation.Status{}, unknown
				},
				runtimeStatus: func(orders.Caller, string, orders.RuntimeFields) (orders.RuntimeStatus, error) {
					return orders.RuntimeStatus{}, nil
				},
			},
			Log: logging.Discard(), Recorder: &recorded, Endpoint: "/graphql",
		})))

		if status, body := post(t, server, test.request); status != http.StatusOK {
			t.Errorf("%s: %s: %d %s", name, test.reason, status, body)
		}

		server.Close()

		if diff := cmp.Diff(test.want, recorded); diff != "" {
			t.Errorf("%s: %s: -want +got\n%s", name, test.reason, diff)
		}
	}
}
