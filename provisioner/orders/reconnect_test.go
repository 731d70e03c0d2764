package orders_test

import (
	"encoding/json"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/agent"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// withAgent replaces the order for the runtime with an order that includes a runtime agent, and returns the ID of the runtime.
func (f *fixture) withAgent(runtimeID string) string {
	f.Helper()

	ordered := order("c-first")
	ordered.KymaConfig = &spec.Kyma{
		Version: "1.13.0", Components: []*spec.Component{{Component: "compass-runtime-agent", Namespace: "compass-system"}},
	}

	runtime, err := f.store.Get(f.Context(), f.store.Reader(), runtimeID)
	if err != nil {
		f.Fatal(err)
	}

	if runtime.Configuration, err = json.Marshal(ordered); err != nil {
		f.Fatal(err)
	}

	if err := f.store.Configured(f.Context(), runtime, 1); err != nil {
		f.Fatal(err)
	}

	return runtimeID
}

func (f *fixture) reconnect(key, runtimeID string) (string, error) {
	return f.service.ReconnectAgent(f.Context(), caller("tenant", key), runtimeID)
}

func TestReconnectAgent(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		runtimeID := f.withAgent(f.createdRuntime("c-first"))

		first, err := f.reconnect("key", runtimeID)
		if err != nil {
			f.Fatal(err)
		}

		again, err := f.reconnect("key", runtimeID)
		if err != nil || again != first {
			f.Errorf("the repeated call: got %s, %v; want %s", again, err, first)
		}

		if _, err := f.reconnect("another", runtimeID); !failure.Is(err, failure.Conflict) || !strings.Contains(err.Error(), "is in progress") {
			f.Errorf("a second operation: got %v, want a conflict", err)
		}

		status, err := f.service.OperationStatus(f.Context(), caller("tenant", ""), first)
		if err != nil || status.Kind != operation.KindReconnectRuntime {
			f.Errorf("the operation has type %s, %v; want one that clients of Kyma Provisioner know", status.Kind, err)
		}

		record := f.claimDue()[first]
		if record.Kind != operation.KindReconnectRuntime || !strings.Contains(string(record.Payload), "compass-system") {
			f.Errorf("the operation has kind %s and data %s", record.Kind, record.Payload)
		}

		f.end(record, process.Succeeded)

		if second, err := f.reconnect("another", runtimeID); err != nil || second == first {
			f.Errorf("a later call: got %s, %v; want a new operation", second, err)
		}
	})
}

func TestReconnectionIsRefused(t *testing.T) {
	asleep := gardencorev1beta1.Shoot{}
	asleep.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}

	for name, c := range map[string]struct {
		reason  string
		prepare func(f *fixture) (runtimeID string)
		kind    failure.Kind
		want    string
	}{
		"without Director": {
			"without Director there is no token for the agent", func(f *fixture) string {
				f.service.Agents = nil

				return f.withAgent(f.createdRuntime("c-first"))
			}, failure.Permanent, "this Provisioner runs without Director: operators can enable it with APP_DIRECTOR_ENABLED",
		},
		"without an agent": {
			"the runtime has no agent", func(f *fixture) string { return f.createdRuntime("c-first") },
			failure.Conflict, "has no runtime agent: its order lacks the component compass-runtime-agent",
		},
		"asleep": {
			"the API server of a hibernated cluster is not running", func(f *fixture) string {
				f.shoot = asleep

				return f.withAgent(f.createdRuntime("c-first"))
			}, failure.Conflict, "is hibernated: wake it up first",
		},
		"Gardener is unavailable": {
			"whether the cluster is hibernated is unknown", func(f *fixture) string {
				runtimeID := f.withAgent(f.createdRuntime("c-first"))
				f.getError = failure.New(failure.Transient, "Gardener is unavailable")

				return runtimeID
			}, failure.Transient, "Gardener is unavailable",
		},
		"being made": {
			"the cluster does not exist yet", func(f *fixture) string {
				f.getError = failure.New(failure.NotFound, "no such Shoot")
				_, runtimeID := f.provision("tenant", "", "c-first")

				return runtimeID
			}, failure.Conflict, "(ProvisionNoInstall) is in progress for the runtime",
		},
		"of another tenant": {
			"runtimes of other tenants are not found", func(f *fixture) string {
				_, runtimeID := f.provision("other", "", "c-first")

				return runtimeID
			}, failure.NotFound, "this tenant has no runtime",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, storagetest.SQLite(t))
			runtimeID := c.prepare(f)
			operations, keys := f.count("operations"), f.count("idempotency_keys")

			_, err := f.reconnect("key", runtimeID)
			if !failure.Is(err, c.kind) || !strings.Contains(failure.Of(err).Text, c.want) {
				t.Errorf("%s: got %v", c.reason, err)
			}

			if f.count("operations") != operations || f.count("idempotency_keys") != keys {
				t.Errorf("%s: the rejected call changed rows", c.reason)
			}
		})
	}
}

func TestConnectionStatus(t *testing.T) {
	pending := agent.Status{State: agent.StatusPending}
	broken := agent.Status{
		State: agent.StatusDisconnected, Problems: []string{"the certificate has expired"},
	}

	for name, c := range map[string]struct {
		reason  string
		prepare func(f *fixture) (runtimeID string)
		want    orders.RuntimeFields
		told    agent.Status
		looked  int
	}{
		"selected": {
			"the agent's status is read from the cluster", func(f *fixture) string { return f.createdRuntime("c-first") },
			orders.RuntimeFields{ConnectionStatus: true},
			broken, 1,
		},
		"not selected": {
			"a query without the field reads nothing", func(f *fixture) string { return f.createdRuntime("c-first") },
			orders.RuntimeFields{Kubeconfig: true},
			pending, 0,
		},
		"being made": {
			"the cluster does not exist yet", func(f *fixture) string {
				_, runtimeID := f.provision("tenant", "", "c-first")

				return runtimeID
			}, orders.RuntimeFields{ConnectionStatus: true}, pending, 0,
		},
		"without Director": {
			"without Director no agent connects", func(f *fixture) string {
				f.service.Agents = nil

				return f.createdRuntime("c-first")
			}, orders.RuntimeFields{ConnectionStatus: true}, pending, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, storagetest.SQLite(t))
			f.connection = broken
			runtimeID := c.prepare(f)

			status, err := f.service.RuntimeStatus(t.Context(), caller("tenant", ""), runtimeID, c.want)
			if err != nil || f.statusCalls != c.looked {
				t.Fatalf("%s: read %d times, %v", c.reason, f.statusCalls, err)
			}

			if diff := cmp.Diff(c.told, status.Connection); diff != "" {
				t.Errorf("%s, -want +got:\n%s", c.reason, diff)
			}
		})
	}
}
