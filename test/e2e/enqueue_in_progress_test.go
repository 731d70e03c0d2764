package e2e

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/provisionerclient/wire"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// standalone is a Provisioner without a broker, called through its GraphQL API.
type standalone struct {
	*testing.T

	client *provisionerclient.Client
	stop   func()
}

func startStandalone(t *testing.T, where client.WithWatch, settings provisioner.Config) standalone {
	t.Helper()

	url, stop := harness.StartProvisioner(t, where, settings, logging.Discard())

	client, err := provisionerclient.New(provisionerclient.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}

	return standalone{T: t, client: client, stop: stop}
}

// order orders a runtime.
func (l standalone) order(name string) provisionerclient.Operation {
	l.Helper()

	disk, size := "gp3", 50

	ordered, err := l.client.ProvisionRuntime(l.Context(), provisionerclient.Caller{Tenant: "tenant"}, &wire.ProvisionRuntimeInput{
		RuntimeInput: &wire.RuntimeInput{Name: name},
		ClusterConfig: &wire.ClusterConfigInput{GardenerConfig: &wire.GardenerConfigInput{
			Name: name, KubernetesVersion: "1.35.4", Provider: "aws", TargetSecret: "aws", Region: "eu-central-1",
			MachineType: "m6i.large", DiskType: &disk, VolumeSizeGB: &size, WorkerCidr: "10.250.0.0/16",
			AutoScalerMin: 1, AutoScalerMax: 3, MaxSurge: 1,
			ProviderSpecificConfig: &wire.ProviderSpecificInput{AwsConfig: &wire.AWSProviderConfigInput{
				VpcCidr: "10.250.0.0/16",
				AwsZones: []*wire.AWSZoneInput{{
					Name: "eu-central-1a", WorkerCidr: "10.250.0.0/19", PublicCidr: "10.250.32.0/20", InternalCidr: "10.250.48.0/20",
				}},
			}},
		}},
	})
	if err != nil {
		l.Fatal(err)
	}

	return ordered
}

// state returns the state of an operation.
func (l standalone) state(operationID string) provisionerclient.State {
	l.Helper()

	status, err := l.client.OperationStatus(l.Context(), "tenant", operationID)
	if err != nil {
		l.Fatal(err)
	}

	return status.State
}

// until waits for the state of an operation.
func (l standalone) until(operationID string, want provisionerclient.State) {
	l.Helper()

	harness.Until(l, "operation "+operationID+" to be "+string(want), func() bool { return l.state(operationID) == want })
}

// TestOperationsOfPreviousProcessAreNotResumed restarts the Provisioner with APP_ENQUEUE_IN_PROGRESS_OPERATIONS=false.
func TestOperationsOfPreviousProcessAreNotResumed(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, fresh harness.Database) {
		const creation = 300 * time.Millisecond

		memory := harness.StartGarden(t, creation)
		settings := harness.ProvisionerSettings(fresh(t, "provisioner"))

		injectClusterFaults(t, memory.Client(), stuck())

		previous := startStandalone(t, memory.Client(), settings)
		begun, unwanted := previous.order("c-begun"), previous.order("c-unwanted")
		previous.until(begun.ID, provisionerclient.StateInProgress)
		previous.until(unwanted.ID, provisionerclient.StateInProgress)
		harness.Until(t, "the Shoots", func() bool { return len(harness.Shoots(t, memory.Client(), memory.Namespace())) == 2 })
		previous.stop()
		injectClusterFaults(t, memory.Client(), nil)

		// It accepts requests and never starts their operations.
		busy := settings
		busy.Engine.Workers = 0

		accepting := startStandalone(t, memory.Client(), busy)
		waiting := accepting.order("c-waiting")
		accepting.stop()

		careful := settings
		careful.EnqueueInProgressOperations = false

		next := startStandalone(t, memory.Client(), careful)

		// Run two own operations in sequence. At their end the other clusters are ready, and the other operations due.
		for _, name := range []string{"c-own", "c-own-too"} {
			next.until(next.order(name).ID, provisionerclient.StateSucceeded)
		}

		for id, want := range map[string]provisionerclient.State{
			begun.ID: provisionerclient.StateInProgress, unwanted.ID: provisionerclient.StateInProgress, waiting.ID: provisionerclient.StatePending,
		} {
			if got := next.state(id); got != want {
				t.Errorf("an operation of a previous process is %s, want %s: it must not be resumed", got, want)
			}
		}

		// A runtime whose operation is not resumed can be removed: the removal belongs to this process and cancels the operation.
		removal, err := next.client.DeprovisionRuntime(t.Context(), provisionerclient.Caller{Tenant: "tenant"}, unwanted.RuntimeID)
		if err != nil {
			t.Fatal(err)
		}

		next.until(removal, provisionerclient.StateSucceeded)
		next.until(unwanted.ID, provisionerclient.StateFailed)
		next.stop()

		last := startStandalone(t, memory.Client(), settings)
		last.until(begun.ID, provisionerclient.StateSucceeded)
		last.until(waiting.ID, provisionerclient.StateSucceeded)
	})
}
