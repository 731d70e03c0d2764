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

	server := startServer(t, runtimes{
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
			reason: "All that could be ordered is understood, also where it is not supported.",
			file:   "former_writes.graphql", want: "provisionRuntime with kymaConfig is not supported yet",
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
