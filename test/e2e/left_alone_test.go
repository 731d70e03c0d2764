package e2e

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
)

// lone is a Provisioner without a broker, that can be stopped before the end of its test.
type lone struct {
	*testing.T

	client *provisionerclient.Client
	stop   func()
}

func startLone(t *testing.T, where client.WithWatch, settings provisioner.Config) lone {
	t.Helper()

	service, err := provisioner.New(t.Context(), settings, where, logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)

	go func() { ended <- service.Run(ctx) }()

	stopped := false
	stop := func() {
		if stopped {
			return
		}

		stopped = true

		cancel()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	}

	t.Cleanup(stop)

	client, err := provisionerclient.New(provisionerclient.Options{URL: "http://" + service.Address() + "/graphql"})
	if err != nil {
		t.Fatal(err)
	}

	return lone{T: t, client: client, stop: stop}
}

// order orders a runtime.
func (l lone) order(name string) provisionerclient.Operation {
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

// state asks how far the operation is.
func (l lone) state(operationID string) provisionerclient.State {
	l.Helper()

	status, err := l.client.OperationStatus(l.Context(), "tenant", operationID)
	if err != nil {
		l.Fatal(err)
	}

	return status.State
}

// until waits for the operation to have the state.
func (l lone) until(operationID string, want provisionerclient.State) {
	l.Helper()

	platform{TB: l.T}.until("operation "+operationID+" is "+string(want), func() bool { return l.state(operationID) == want })
}

// TestOperationsOfAFormerProcessAreLeftAlone restarts the Provisioner with APP_ENQUEUE_IN_PROGRESS_OPERATIONS=false.
func TestOperationsOfAFormerProcessAreLeftAlone(t *testing.T) {
	t.Parallel()

	eachDatabase(t, func(t *testing.T, fresh database) {
		const creation = 300 * time.Millisecond

		memory, err := fakegarden.Open(t.Context(), fakegarden.Options{
			Dir: filepath.Join(t.TempDir(), "garden"), ClusterCreation: creation, Log: logging.Discard(),
		})
		if err != nil {
			t.Fatal(err)
		}

		run(t, memory.Run)

		settings := provisioner.DefaultConfig()
		settings.Address, settings.StatusAddress, settings.ShutdownDelay = "127.0.0.1:0", "127.0.0.1:0", 0
		settings.Database = fresh(t, "provisioner")
		settings.Gardener.Project = fakegarden.DefaultProject

		where := landscape{platform: platform{TB: t}, garden: memory}
		where.faults(stuck())

		former := startLone(t, memory.Client(), settings)
		begun, unwanted := former.order("c-begun"), former.order("c-unwanted")
		former.until(begun.ID, provisionerclient.StateInProgress)
		former.until(unwanted.ID, provisionerclient.StateInProgress)
		where.until("the Shoots", func() bool { return len(where.shoots()) == 2 })
		former.stop()
		where.faults(nil)

		// It only takes requests: its operation is not begun.
		busy := settings
		busy.Engine.Workers = 0

		accepting := startLone(t, memory.Client(), busy)
		waiting := accepting.order("c-waiting")
		accepting.stop()

		careful := settings
		careful.EnqueueInProgressOperations = false

		next := startLone(t, memory.Client(), careful)

		// Two of its own, one after the other: in that time the others' clusters are long made, and their operations due.
		for _, name := range []string{"c-own", "c-own-too"} {
			next.until(next.order(name).ID, provisionerclient.StateSucceeded)
		}

		for id, want := range map[string]provisionerclient.State{
			begun.ID: provisionerclient.StateInProgress, unwanted.ID: provisionerclient.StateInProgress, waiting.ID: provisionerclient.StatePending,
		} {
			if got := next.state(id); got != want {
				t.Errorf("an operation of a former process is %s, want it left alone: %s", got, want)
			}
		}

		// What is left alone can be removed: the removal is of this process, and cancels what stands before it.
		removal, err := next.client.DeprovisionRuntime(t.Context(), provisionerclient.Caller{Tenant: "tenant"}, unwanted.RuntimeID)
		if err != nil {
			t.Fatal(err)
		}

		next.until(removal, provisionerclient.StateSucceeded)
		next.until(unwanted.ID, provisionerclient.StateFailed)
		next.stop()

		last := startLone(t, memory.Client(), settings)
		last.until(begun.ID, provisionerclient.StateSucceeded)
		last.until(waiting.ID, provisionerclient.StateSucceeded)
	})
}
