package simulated_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tenant = "acme"

// start runs a Provisioner until the test ends and returns the Provisioner and a client like the broker's.
func start(t *testing.T, behaviour simulated.Behaviour) (*simulated.Provisioner, *provisionerclient.Client) {
	t.Helper()

	provisioner := simulated.Start(t, behaviour)

	client, err := provisionerclient.New(provisionerclient.Options{URL: provisioner.URL})
	if err != nil {
		t.Fatal(err)
	}

	return provisioner, client
}

func instance() environment.Instance {
	return environment.Instance{
		ID: "instance-1", GlobalAccountID: tenant, SubAccountID: "sub-1", Provider: "gcp", Region: "europe-west3",
		Name: "first", ShootName: "c-1234567",
		Request: environment.Request{Cluster: environment.Cluster{
			KubernetesVersion: "1.35.4", MachineType: "n2-standard-2", VolumeType: "pd-balanced", VolumeSizeGB: 80,
			AutoScalerMin: 2, AutoScalerMax: 9, MaxSurge: 3, MaxUnavailable: 1, Zones: []string{"europe-west3-a"},
			NodesCIDR: "10.250.0.0/16", PodsCIDR: "10.96.0.0/13", ServicesCIDR: "10.104.0.0/13", Purpose: "development",
			Administrators: []string{"a@example.com"},
		}},
	}
}

func order(t *testing.T, client *provisionerclient.Client, key string) provisionerclient.Operation {
	t.Helper()

	ordered, err := client.OrderRuntime(t.Context(), provisionerclient.Caller{Tenant: tenant, IdempotencyKey: key}, instance(), "gcp")
	if err != nil {
		t.Fatal(err)
	}

	return ordered
}

func state(t *testing.T, client *provisionerclient.Client, id string) provisionerclient.State {
	t.Helper()

	operation, err := client.OperationStatus(t.Context(), tenant, id)
	if err != nil {
		t.Fatal(err)
	}

	return operation.State
}

// TestAtOnce checks that a runtime is ready when the Provisioner responds to its order, that its kubeconfig works,
// and that all calls are counted.
func TestAtOnce(t *testing.T) {
	provisioner, client := start(t, simulated.Behaviour{})

	ordered := order(t, client, "key")

	if again := order(t, client, "key"); again.RuntimeID != ordered.RuntimeID {
		t.Errorf("a repeated order created the runtime %s in addition to %s", again.RuntimeID, ordered.RuntimeID)
	}

	if got := state(t, client, ordered.ID); got != provisionerclient.StateSucceeded {
		t.Errorf("state %s", got)
	}

	reached := instance()
	reached.RuntimeID = ordered.RuntimeID

	if err := clusterclient.New(client).Probe(t.Context(), reached); err != nil {
		t.Errorf("probing the runtime: %v", err)
	}

	want := simulated.Calls{Orders: 2, Statuses: 1, Polled: 1, Kubeconfigs: 1, Probes: 1}
	if diff := cmp.Diff(want, provisioner.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}

	if at := provisioner.Ordered(); len(at) != 1 || at["key"].IsZero() {
		t.Errorf("times of the orders: %v", at)
	}
}

// TestHold checks that runtimes become ready when Release is called and not earlier, and that the feed reports the change.
func TestHold(t *testing.T) {
	provisioner, client := start(t, simulated.Behaviour{Hold: true})

	start, err := client.Changes(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}

	ordered := order(t, client, "key")
	if got := state(t, client, ordered.ID); got != provisionerclient.StateInProgress {
		t.Errorf("state %s before the release", got)
	}

	provisioner.Release()

	if got := state(t, client, ordered.ID); got != provisionerclient.StateSucceeded {
		t.Errorf("state %s after the release", got)
	}

	changes, err := client.Changes(t.Context(), start.Cursor, time.Second)
	if err != nil {
		t.Fatal(err)
	}

	if len(changes.Operations) != 1 || changes.Operations[0].OperationID != ordered.ID {
		t.Errorf("the feed reports %+v", changes.Operations)
	}

	if late := order(t, client, "late"); state(t, client, late.ID) != provisionerclient.StateSucceeded {
		t.Error("a runtime ordered after the release is not ready")
	}
}

// TestKymaProvisioner checks that the broker's client recognizes the missing feed, and that all other calls work.
func TestKymaProvisioner(t *testing.T) {
	_, client := start(t, simulated.Behaviour{KymaProvisioner: true})

	if _, err := client.Changes(t.Context(), "", 0); !errors.Is(err, provisionerclient.ErrNoFeed) {
		t.Errorf("got %v, want ErrNoFeed", err)
	}

	if got := state(t, client, order(t, client, "key").ID); got != provisionerclient.StateSucceeded {
		t.Errorf("state %s", got)
	}
}

// TestSeveralStatuses checks that a request for several operations counts as one request.
func TestSeveralStatuses(t *testing.T) {
	provisioner, client := start(t, simulated.Behaviour{KymaProvisioner: true})
	first, second := order(t, client, "first").ID, order(t, client, "second").ID

	for id, result := range client.OperationStatuses(t.Context(), tenant, []string{first, second}) {
		if result.Err != nil || result.Operation.ID != id {
			t.Errorf("operation %s: got %+v, %v", id, result.Operation, result.Err)
		}
	}

	if calls := provisioner.Calls(); calls.Statuses != 1 || calls.Polled != 2 {
		t.Errorf("%d requests for %d operations", calls.Statuses, calls.Polled)
	}
}
