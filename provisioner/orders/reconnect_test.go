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

// withAgent stores the order of a runtime with a runtime agent.
func (b *bench) withAgent(runtimeID string) string {
	b.Helper()

	ordered := order("c-first")
	ordered.KymaConfig = &spec.Kyma{
		Version: "1.13.0", Components: []*spec.Component{{Component: "compass-runtime-agent", Namespace: "compass-system"}},
	}

	configuration, err := json.Marshal(ordered)
	if err != nil {
		b.Fatal(err)
	}

	if err := b.store.Configured(b.Context(), runtimeID, configuration, 1); err != nil {
		b.Fatal(err)
	}

	return runtimeID
}

func (b *bench) reconnect(key, runtimeID string) (string, error) {
	return b.service.ReconnectAgent(b.Context(), caller("tenant", key), runtimeID)
}

func TestReconnectAgent(t *testing.T) {
	each(t, func(b *bench) {
		runtimeID := b.withAgent(b.made("c-first"))

		first, err := b.reconnect("key", runtimeID)
		if err != nil {
			b.Fatal(err)
		}

		again, err := b.reconnect("key", runtimeID)
		if err != nil || again != first {
			b.Errorf("the repeated call: got %s, %v; want %s", again, err, first)
		}

		if _, err := b.reconnect("another", runtimeID); !failure.Is(err, failure.Conflict) || !strings.Contains(err.Error(), "is in progress") {
			b.Errorf("a second operation: got %v, want a conflict", err)
		}

		status, err := b.service.OperationStatus(b.Context(), caller("tenant", ""), first)
		if err != nil || status.Kind != operation.KindReconnectRuntime {
			b.Errorf("the operation has type %s, %v; want one that clients of Kyma Provisioner know", status.Kind, err)
		}

		record := b.begin()[first]
		if record.Kind != operation.KindReconnectRuntime || !strings.Contains(string(record.Payload), "compass-system") {
			b.Errorf("the operation has kind %s and data %s", record.Kind, record.Payload)
		}

		b.end(record, process.Succeeded)

		if second, err := b.reconnect("another", runtimeID); err != nil || second == first {
			b.Errorf("a later call: got %s, %v; want a new operation", second, err)
		}
	})
}

func TestReconnectionIsRefused(t *testing.T) {
	asleep := gardencorev1beta1.Shoot{}
	asleep.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}

	for name, c := range map[string]struct {
		reason  string
		prepare func(b *bench) (runtimeID string)
		kind    failure.Kind
		want    string
	}{
		"without Director": {
			"without Director there is no token for the agent", func(b *bench) string {
				b.service.Agents = nil

				return b.withAgent(b.made("c-first"))
			}, failure.Permanent, "this Provisioner runs without it: its operators enable it with APP_DIRECTOR_ENABLED",
		},
		"without an agent": {
			"the runtime has no agent", func(b *bench) string { return b.made("c-first") },
			failure.Conflict, "has no runtime agent: its order lacks the component compass-runtime-agent",
		},
		"asleep": {
			"the API server of a hibernated cluster does not run", func(b *bench) string {
				b.shoot = asleep

				return b.withAgent(b.made("c-first"))
			}, failure.Conflict, "is hibernated: wake it up first",
		},
		"Gardener is unavailable": {
			"whether the cluster is hibernated is unknown", func(b *bench) string {
				b.unread = failure.New(failure.Transient, "Gardener is unavailable")

				return b.withAgent(b.made("c-first"))
			}, failure.Transient, "Gardener is unavailable",
		},
		"being made": {
			"the cluster does not exist yet", func(b *bench) string {
				b.unread = failure.New(failure.NotFound, "no such Shoot")
				_, runtimeID := b.provision("tenant", "", "c-first")

				return runtimeID
			}, failure.Conflict, "(ProvisionNoInstall) is in progress for the runtime",
		},
		"of another tenant": {
			"runtimes of other tenants are not found", func(b *bench) string {
				_, runtimeID := b.provision("other", "", "c-first")

				return runtimeID
			}, failure.NotFound, "of this tenant",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, storagetest.SQLite(t))
			runtimeID := c.prepare(b)
			operations, keys := b.count("operations"), b.count("idempotency_keys")

			_, err := b.reconnect("key", runtimeID)
			if !failure.Is(err, c.kind) || !strings.Contains(failure.Of(err).Text, c.want) {
				t.Errorf("%s: got %v", c.reason, err)
			}

			if b.count("operations") != operations || b.count("idempotency_keys") != keys {
				t.Errorf("%s: the refused call changed rows", c.reason)
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
		prepare func(b *bench) (runtimeID string)
		want    orders.RuntimeFields
		told    agent.Status
		looked  int
	}{
		"selected": {
			"the agent's status is read from the cluster", func(b *bench) string { return b.made("c-first") },
			orders.RuntimeFields{ConnectionStatus: true},
			broken, 1,
		},
		"not selected": {
			"a query without the field reads nothing", func(b *bench) string { return b.made("c-first") },
			orders.RuntimeFields{Kubeconfig: true},
			pending, 0,
		},
		"being made": {
			"the cluster does not exist yet", func(b *bench) string {
				_, runtimeID := b.provision("tenant", "", "c-first")

				return runtimeID
			}, orders.RuntimeFields{ConnectionStatus: true}, pending, 0,
		},
		"without Director": {
			"without Director no agent connects", func(b *bench) string {
				b.service.Agents = nil

				return b.made("c-first")
			}, orders.RuntimeFields{ConnectionStatus: true}, pending, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, storagetest.SQLite(t))
			b.connection = broken
			runtimeID := c.prepare(b)

			status, err := b.service.RuntimeStatus(t.Context(), caller("tenant", ""), runtimeID, c.want)
			if err != nil || b.looked != c.looked {
				t.Fatalf("%s: read %d times, %v", c.reason, b.looked, err)
			}

			if diff := cmp.Diff(c.told, status.Connection); diff != "" {
				t.Errorf("%s, -want +got:\n%s", c.reason, diff)
			}
		})
	}
}
