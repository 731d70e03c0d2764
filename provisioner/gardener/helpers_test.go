package gardener_test

import (
	"context"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

const (
	name      = "c-first"
	runtimeID = "runtime-1"
)

// fixture is a fake garden without controllers, with the client under test.
type fixture struct {
	*testing.T

	garden *fakegarden.Memory
	shoots *gardener.Client
}

func newFixture(t *testing.T) fixture {
	t.Helper()

	memory, err := fakegarden.Open(t.Context(), fakegarden.Options{Dir: t.TempDir(), ClusterCreation: time.Millisecond, Log: logging.Discard()})
	if err != nil {
		t.Fatal(err)
	}

	return fixture{T: t, garden: memory, shoots: gardener.New(memory.Client(), memory.Namespace())}
}

// order returns the objects for a runtime's cluster.
func (b fixture) order(runtimeID string) *shoot.Objects {
	b.Helper()

	return b.orderWith(runtimeID, func(*spec.Cluster) {})
}

func (b fixture) orderWith(runtimeID string, change func(config *spec.Cluster)) *shoot.Objects {
	b.Helper()

	config := &spec.Cluster{
		Name: name, KubernetesVersion: "1.35.4", Provider: "aws", TargetSecret: "aws", Region: "eu-central-1",
		MachineType: "m6i.large", DiskType: new("gp3"), VolumeSizeGB: new(50), WorkerCIDR: "10.250.0.0/16",
		AutoScalerMin: 1, AutoScalerMax: 3, MaxSurge: 1, Purpose: new("evaluation"),
		ProviderSpecificConfig: &spec.Provider{AWSConfig: &spec.AWS{
			VpcCIDR: "10.250.0.0/16",
			AWSZones: []*spec.AWSZone{{
				Name: "eu-central-1a", WorkerCIDR: "10.250.0.0/19", PublicCIDR: "10.250.32.0/20", InternalCIDR: "10.250.48.0/20",
			}},
		}},
	}
	change(config)

	built, err := shoot.Build(shoot.Runtime{
		ID: runtimeID, OperationID: "op-1", Tenant: "acme", SubAccount: "acme-dev", Config: config,
	}, shoot.Options{Namespace: b.garden.Namespace()})
	if err != nil {
		b.Fatal(err)
	}

	return built
}

func (b fixture) apply(runtimeID string) {
	b.Helper()

	if err := b.shoots.Apply(b.Context(), b.order(runtimeID)); err != nil {
		b.Fatal(err)
	}
}

// addFinalizer adds a finalizer to the Shoot, which delays its deletion. Gardenlets add such finalizers.
func (b fixture) addFinalizer() {
	b.Helper()

	existing := b.get()
	existing.Finalizers = append(existing.Finalizers, "example.com/held")

	if err := b.garden.Client().Update(b.Context(), existing); err != nil {
		b.Fatal(err)
	}
}

func (b fixture) get() *gardencorev1beta1.Shoot {
	b.Helper()

	existing := &gardencorev1beta1.Shoot{}
	if err := b.garden.Client().Get(b.Context(), client.ObjectKey{Namespace: b.garden.Namespace(), Name: name}, existing); err != nil {
		b.Fatal(err)
	}

	return existing
}

func run(t *testing.T, part func(context.Context) error) {
	t.Helper()

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)

	go func() { done <- part(ctx) }()

	t.Cleanup(func() {
		cancel()

		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
