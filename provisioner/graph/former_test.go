package graph_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
)

// TestFormerClients sends every field that clients of the former Provisioner know. A field that went missing from the schema,
// or became stricter, would have them refused as no valid GraphQL.
func TestFormerClients(t *testing.T) {
	t.Parallel()

	accepted := func(id string) (model.OperationStatus, error) { return model.OperationStatus{ID: &id}, nil }

	server := startServer(t, runtimes{
		provision: func(graph.Caller, model.ProvisionRuntimeInput) (model.OperationStatus, error) {
			return accepted("op-1")
		},
		upgradeShoot: func(graph.Caller, string, model.UpgradeShootInput) (model.OperationStatus, error) {
			return accepted("op-2")
		},
		upgradeRuntime: func(graph.Caller, string, model.UpgradeRuntimeInput) (model.OperationStatus, error) {
			return accepted("op-3")
		},
		hibernate: func(graph.Caller, string) (model.OperationStatus, error) { return accepted("op-4") },
		rollBack:  func(graph.Caller, string) (model.OperationStatus, error) { return accepted("op-5") },
		runtimeStatus: func(graph.Caller, string, graph.RuntimeFields) (model.RuntimeStatus, error) {
			return model.RuntimeStatus{}, nil
		},
	})

	cases := map[string]struct {
		reason string
		file   string
		want   string
	}{
		"Reads": {
			reason: "All that could be read can be selected.",
			file:   "former_reads.graphql", want: `{"data":{"result":{"lastOperationStatus":null,`,
		},
		"Writes": {
			reason: "All that could be ordered is understood.",
			file:   "former_writes.graphql", want: `{"data":{"provision":{"id":"op-1"},"upgradeShoot":{"id":"op-2"},"upgradeRuntime":{"id":"op-3"},`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			text, err := os.ReadFile(filepath.Join("testdata", tc.file))
			if err != nil {
				t.Fatal(err)
			}

			status, got := post(t, server, asTenant(string(text)))
			if status != 200 || !strings.Contains(got, tc.want) {
				t.Errorf("%s\nwant 200 with %s, got %d %s", tc.reason, tc.want, status, got)
			}
		})
	}
}
