package graph_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
)

func TestRuntimeStatusSelection(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		query  string
		want   graph.RuntimeFields
	}{
		"Nothing": {
			reason: "The last operation costs nothing but our own database.",
			query:  `{ runtimeStatus(id: "rt") { lastOperationStatus { id } } }`,
		},
		"Kubeconfig": {
			reason: "A kubeconfig is wanted only when it is selected.",
			query:  `{ runtimeStatus(id: "rt") { runtimeConfiguration { kubeconfig } } }`,
			want:   graph.RuntimeFields{Kubeconfig: true},
		},
		"Cluster": {
			reason: "The configuration of the cluster does not bring a kubeconfig with it.",
			query:  `{ runtimeStatus(id: "rt") { runtimeConfiguration { clusterConfig { name } } } }`,
			want:   graph.RuntimeFields{ClusterConfig: true},
		},
		"Skipped": {
			reason: "What a directive leaves out is not selected.",
			query:  `{ runtimeStatus(id: "rt") { runtimeConfiguration { kubeconfig @skip(if: true) clusterConfig { name } } } }`,
			want:   graph.RuntimeFields{ClusterConfig: true},
		},
		"Everything": {
			reason: "Aliases and fragments select as well.",
			query: `query { result: runtimeStatus(id: "rt") { ...all a: runtimeConfiguration { kubeconfig } } }
				fragment all on RuntimeStatus {
					hibernationStatus { hibernated } runtimeConnectionStatus { status }
					... on RuntimeStatus { b: runtimeConfiguration { ... on RuntimeConfig { k: clusterConfig { name } } } }
				}`,
			want: graph.RuntimeFields{Kubeconfig: true, ClusterConfig: true, ConnectionStatus: true, Hibernation: true},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var got graph.RuntimeFields

			server := startServer(t, runtimes{
				runtimeStatus: func(_ graph.Caller, _ string, want graph.RuntimeFields) (model.RuntimeStatus, error) {
					got = want

					return model.RuntimeStatus{}, nil
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

	operation := &model.OperationStatus{ID: new("op"), Operation: model.OperationTypeProvision, State: model.OperationStateFailed}

	cases := map[string]struct {
		reason string
		status model.RuntimeStatus
		err    error
		want   string
	}{
		"Whole": {
			reason: "Where the former Provisioner answered with empty objects, we do.",
			status: model.RuntimeStatus{
				LastOperationStatus: operation,
				RuntimeConfiguration: &model.RuntimeConfig{
					Kubeconfig: new("apiVersion: v1"),
					ClusterConfig: &model.GardenerConfig{
						Name: new("c-1"), Provider: new("gcp"), ProviderSpecificConfig: model.GCPProviderConfig{Zones: []string{"a"}},
					},
				},
			},
			want: `{"data":{"result":{"lastOperationStatus":{"id":"op","state":"Failed","lastError":{"errMessage":""}},` +
				`"runtimeConfiguration":{"kubeconfig":"apiVersion: v1","clusterConfig":{"name":"c-1","provider":"gcp",` +
				`"providerSpecificConfig":{"zones":["a"]},"oidcConfig":{"clientID":"","signingAlgs":[]}},"kymaConfig":null},` +
				`"hibernationStatus":null}}}`,
		},
		"Partial": {
			reason: "What can be told is told beside the error for the rest.",
			status: model.RuntimeStatus{LastOperationStatus: operation},
			err:    failure.New(failure.Transient, "Gardener does not answer").WithReason("err_gardener", failure.ComponentGardener),
			want: `{"errors":[{"message":"Gardener does not answer","path":["result"],"extensions":{"error_code":503,` +
				`"error_component":"gardener","error_reason":"err_gardener"}}],` +
				`"data":{"result":{"lastOperationStatus":{"id":"op","state":"Failed","lastError":{"errMessage":""}},` +
				`"runtimeConfiguration":null,"hibernationStatus":null}}}`,
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
				runtimeStatus: func(graph.Caller, string, graph.RuntimeFields) (model.RuntimeStatus, error) {
					return tc.status, tc.err
				},
			})

			_, got := post(t, server, asTenant(query))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nanswer: -want +got:\n%s", tc.reason, diff)
			}

			if operation.LastError != nil {
				t.Errorf("%s\nThe Runtimes' own object must not be changed.", tc.reason)
			}
		})
	}
}

func TestOperationChanges(t *testing.T) {
	t.Parallel()

	change := model.OperationChange{
		ID: "op", RuntimeID: "rt", Operation: model.OperationTypeDeprovision, State: model.OperationStateSucceeded,
	}

	cases := map[string]struct {
		reason    string
		arguments string
		after     string
		wait      time.Duration
		changes   []model.OperationChange
		want      string
	}{
		"First": {
			reason: "The first request has no cursor; a list without changes is empty and not null.",
			wait:   20 * time.Second,
			want:   `{"data":{"operationChanges":{"cursor":"7","operations":[]}}}`,
		},
		"Changes": {
			reason:    "Changes are told with what everybody may know of an operation.",
			arguments: `(after: "6", waitSeconds: 5)`, after: "6", wait: 5 * time.Second, changes: []model.OperationChange{change},
			want: `{"data":{"operationChanges":{"cursor":"7","operations":[` +
				`{"id":"op","runtimeID":"rt","operation":"Deprovision","state":"Succeeded"}]}}}`,
		},
		"TooLong": {
			reason:    "Nobody waits longer than half a minute.",
			arguments: `(after: "6", waitSeconds: 3600)`, after: "6", wait: 30 * time.Second,
			want: `{"data":{"operationChanges":{"cursor":"7","operations":[]}}}`,
		},
		"Negative": {
			reason:    "Less than nothing is nothing.",
			arguments: `(after: null, waitSeconds: -1)`,
			want:      `{"data":{"operationChanges":{"cursor":"7","operations":[]}}}`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			server := startServer(t, runtimes{
				changes: func(_ context.Context, after string, wait time.Duration) (string, []model.OperationChange, error) {
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
