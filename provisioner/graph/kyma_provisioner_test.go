package graph_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// TestClientsOfKymaProvisioner sends requests with every field of Kyma Provisioner's schema. If our schema lacked a field or
// required an additional one, these requests would be invalid GraphQL.
func TestClientsOfKymaProvisioner(t *testing.T) {
	t.Parallel()

	accepted := func(id string) (operation.Status, error) { return operation.Status{ID: id}, nil }

	server := startServer(t, runtimes{
		provision: func(orders.Caller, spec.Runtime) (operation.Status, error) {
			return accepted("op-1")
		},
		upgradeShoot: func(orders.Caller, string, spec.Upgrade) (operation.Status, error) {
			return accepted("op-2")
		},
		upgradeRuntime: func(orders.Caller, string, spec.KymaUpgrade) (operation.Status, error) {
			return accepted("op-3")
		},
		hibernate: func(orders.Caller, string) (operation.Status, error) { return accepted("op-4") },
		rollBack:  func(orders.Caller, string) (operation.Status, error) { return accepted("op-5") },
		runtimeStatus: func(orders.Caller, string, orders.RuntimeFields) (orders.RuntimeStatus, error) {
			return orders.RuntimeStatus{}, nil
		},
	})

	cases := map[string]struct {
		reason string
		file   string
		want   string
	}{
		"Reads": {
			reason: "Every field of a response can be selected.",
			file:   "kyma_provisioner_reads.graphql", want: `{"data":{"result":{"lastOperationStatus":null,`,
		},
		"Writes": {
			reason: "Every field of an order is accepted.",
			file:   "kyma_provisioner_writes.graphql", want: `{"data":{"provision":{"id":"op-1"},"upgradeShoot":{"id":"op-2"},"upgradeRuntime":{"id":"op-3"},`,
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
