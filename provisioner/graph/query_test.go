package graph_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

func TestRuntimeStatusSelection(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		query  string
		want   orders.RuntimeFields
	}{
		"Nothing": {
			reason: "The last operation needs no other system.",
			query:  `{ runtimeStatus(id: "rt") { lastOperationStatus { id } } }`,
		},
		"Kubeconfig": {
			reason: "A selected kubeconfig is requested.",
			query:  `{ runtimeStatus(id: "rt") { runtimeConfiguration { kubeconfig } } }`,
			want:   orders.RuntimeFields{Kubeconfig: true},
		},
		"Cluster": {
			reason: "The configuration of the cluster does not request a kubeconfig.",
			query:  `{ runtimeStatus(id: "rt") { runtimeConfiguration { clusterConfig { name } } } }`,
		},
		"Skipped": {
			reason: "A skipped field is not requested.",
			query:  `{ runtimeStatus(id: "rt") { runtimeConfiguration { kubeconfig @skip(if: true) clusterConfig { name } } } }`,
		},
		"Everything": {
			reason: "Aliases and fragments are followed.",
			query: `query { result: runtimeStatus(id: "rt") { ...all a: runtimeConfiguration { kubeconfig } } }
				fragment all on RuntimeStatus {
					hibernationStatus { hibernated } runtimeConnectionStatus { status } consoleURL maintenanceWindow { begin }
					... on RuntimeStatus { b: runtimeConfiguration { ... on RuntimeConfig { k: clusterConfig { name } } } }
				}`,
			want: orders.RuntimeFields{Kubeconfig: true, ConnectionStatus: true, Hibernation: true, Maintenance: true, Console: true},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var got orders.RuntimeFields

			server := startServer(t, runtimes{
				runtimeStatus: func(_ orders.Caller, _ string, want orders.RuntimeFields) (orders.RuntimeStatus, error) {
					got = want

					return orders.RuntimeStatus{}, nil
				},
			})

			post(t, server, asTenant(tc.query))

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nwanted fields: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRuntimeStatus(t *testing.T) {
	t.Parallel()

	const query = `{ result: runtimeStatus(id: "rt") {
		lastOperationStatus { id state lastError { errMessage } }
		runtimeConfiguration { kubeconfig clusterConfig { name provider providerSpecificConfig { ... on GCPProviderConfig { zones } }
			oidcConfig { clientID signingAlgs } } kymaConfig { version } }
		hibernationStatus { hibernated }
	} }`

	failed := &operation.Status{ID: "op", Kind: operation.KindProvision, State: process.Failed}

	cases := map[string]struct {
		reason string
		status orders.RuntimeStatus
		err    error
		want   string
	}{
		"Whole": {
			reason: "Missing objects are empty where they are in Kyma Provisioner.",
			status: orders.RuntimeStatus{
				Operation: failed, Kubeconfig: new("apiVersion: v1"),
				Cluster: &spec.Cluster{
					Name: "c-1", Provider: "gcp", ProviderSpecificConfig: &spec.Provider{GCPConfig: &spec.GCP{Zones: []string{"a"}}},
				},
			},
			want: `{"data":{"result":{"lastOperationStatus":{"id":"op","state":"Failed","lastError":{"errMessage":""}},` +
				`"runtimeConfiguration":{"kubeconfig":"apiVersion: v1","clusterConfig":{"name":"c-1","provider":"gcp",` +
				`"providerSpecificConfig":{"zones":["a"]},"oidcConfig":{"clientID":"","signingAlgs":[]}},"kymaConfig":null},` +
				`"hibernationStatus":null}}}`,
		},
		"Partial": {
			reason: "The other parts are returned with the error.",
			status: orders.RuntimeStatus{Operation: failed},
			err:    failure.New(failure.Transient, "Gardener does not answer").WithReason("err_gardener", failure.ComponentGardener),
			want: `{"errors":[{"message":"Gardener does not answer","path":["result"],"extensions":{"error_code":503,` +
				`"error_component":"gardener","error_reason":"err_gardener"}}],` +
				`"data":{"result":{"lastOperationStatus":{"id":"op","state":"Failed","lastError":{"errMessage":""}},` +
				`"runtimeConfiguration":{"kubeconfig":null,"clusterConfig":null,"kymaConfig":null},"hibernationStatus":null}}}`,
		},
		"NotFound": {
			reason: "A runtime that does not exist has no status.",
			err: failure.New(failure.NotFound, "runtime rt does not exist").
				WithReason(failure.ReasonNotFound, failure.ComponentProvisionerStorage),
			want: `{"errors":[{"message":"runtime rt does not exist","path":["result"],"extensions":{"error_code":400,` +
				`"error_component":"db - provisioner","error_reason":"err_db_not_found"}}],"data":{"result":null}}`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			server := startServer(t, runtimes{
				runtimeStatus: func(orders.Caller, string, orders.RuntimeFields) (orders.RuntimeStatus, error) {
					return tc.status, tc.err
				},
			})

			_, got := post(t, server, asTenant(query))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nanswer: -want +got:\n%s", tc.reason, diff)
			}

			if tc.status.Cluster != nil && tc.status.Cluster.OIDCConfig != nil {
				t.Errorf("%s\nthe object of the service was changed", tc.reason)
			}
		})
	}
}

// TestOperationErrors selects the errors of operations, in a query and in a mutation.
func TestOperationErrors(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		query  string
		errors []string
		err    error
		want   string
	}{
		"Query": {
			reason: "All errors are shown beside the last one.",
			query:  `{ result: runtimeOperationStatus(id: "op") { id lastError { errMessage } errors { message } } }`,
			errors: []string{"first", "second"},
			want:   `{"data":{"result":{"id":"op","lastError":{"errMessage":"second"},"errors":[{"message":"first"},{"message":"second"}]}}}`,
		},
		"Mutation": {
			reason: "A new operation has no errors, which is an empty list.",
			query:  `mutation { result: hibernateRuntime(id: "rt") { id errors { message } } }`, errors: []string{},
			want: `{"data":{"result":{"id":"op","errors":[]}}}`,
		},
		"Away": {
			reason: "The list is not null, so without it there is no operation.",
			query:  `{ result: runtimeOperationStatus(id: "op") { id errors { message } } }`,
			err:    failure.New(failure.Transient, "the database is unreachable"),
			want: `{"errors":[{"message":"the database is unreachable","path":["result","errors"],"extensions":{"error_code":503,` +
				`"error_component":"provisioner","error_reason":"err_provisioner_internal"}}],"data":{"result":null}}`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			status := operation.Status{ID: "op", Kind: operation.KindHibernate, State: process.InProgress, Problem: process.Problem{Message: "second"}}
			server := startServer(t, runtimes{
				operationStatus: func(orders.Caller, string) (operation.Status, error) { return status, nil },
				hibernate:       func(orders.Caller, string) (operation.Status, error) { return status, nil },
				operationErrors: func(id string) ([]string, error) {
					if id != "op" {
						t.Errorf("errors of operation %q", id)
					}

					return tc.errors, tc.err
				},
			})

			if _, got := post(t, server, asTenant(tc.query)); got != tc.want {
				t.Errorf("%s\nanswer: -want +got:\n%s", tc.reason, cmp.Diff(tc.want, got))
			}
		})
	}
}

func TestOperationChanges(t *testing.T) {
	t.Parallel()

	change := orders.Change{
		ID: "op", RuntimeID: "rt", Kind: operation.KindDeprovision, State: process.Succeeded,
	}

	cases := map[string]struct {
		reason    string
		arguments string
		after     string
		wait      time.Duration
		changes   []orders.Change
		want      string
	}{
		"First": {
			reason: "The first request has no cursor; an empty list is not null.",
			wait:   20 * time.Second,
			want:   `{"data":{"operationChanges":{"cursor":"7","operations":[]}}}`,
		},
		"Changes": {
			reason:    "Changes contain only fields that all tenants may see.",
			arguments: `(after: "6", waitSeconds: 5)`, after: "6", wait: 5 * time.Second, changes: []orders.Change{change},
			want: `{"data":{"operationChanges":{"cursor":"7","operations":[` +
				`{"id":"op","runtimeID":"rt","operation":"Deprovision","state":"Succeeded"}]}}}`,
		},
		"TooLong": {
			reason:    "The wait is at most half a minute.",
			arguments: `(after: "6", waitSeconds: 3600)`, after: "6", wait: 30 * time.Second,
			want: `{"data":{"operationChanges":{"cursor":"7","operations":[]}}}`,
		},
		"Negative": {
			reason:    "A negative wait is treated as 0.",
			arguments: `(after: null, waitSeconds: -1)`,
			want:      `{"data":{"operationChanges":{"cursor":"7","operations":[]}}}`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			server := startServer(t, runtimes{
				changes: func(_ context.Context, after string, wait time.Duration) (string, []orders.Change, error) {
					if after != tc.after || wait != tc.wait {
						t.Errorf("%s\nwant after %q wait %s, got %q %s", tc.reason, tc.after, tc.wait, after, wait)
					}

					return "7", tc.changes, nil
				},
			})

			query := `{ operationChanges` + tc.arguments + ` { cursor operations { id runtimeID operation state } } }`

			_, got := post(t, server, exchange{query: query})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nanswer: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
