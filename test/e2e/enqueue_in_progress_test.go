package e2e

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/logging"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// standalone is a Provisioner without a broker. Its client calls the GraphQL API.
type standalone struct {
	*testing.T

	client *provisionerclient.Client
	stop   func()
}

func startStandalone(t *testing.T, garden client.WithWatch, settings provisioner.Config) standalone {
	t.Helper()

	url, stop := harness.StartProvisioner(t, garden, settings, logging.Discard())

	client, err := provisionerclient.New(provisionerclient.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}

	return standalone{T: t, client: client, stop: stop}
}

func (p standalone) order(name string) provisionerclient.Operation {
	p.Helper()

	ordered, err := p.client.ProvisionRuntime(p.Context(), provisionerclient.Caller{Tenant: "tenant"}, harness.SmallRuntime(name))
	if err != nil {
		p.Fatal(err)
	}

	return ordered
}

func (p standalone) state(operationID string) provisionerclient.State {
	p.Helper()

	status, err := p.client.OperationStatus(p.Context(), "tenant", operationID)
	if err != nil {
		p.Fatal(err)
	}

	return status.State
}

func (p standalone) waitForState(operationID string, want provisionerclient.State) {
	p.Helper()

	harness.Until(p, "operation "+operationID+" to be "+string(want), func() bool { return p.state(operationID) == want })
}

// TestOperationsOfPreviousProcessAreNotResumed restarts the Provisioner with APP_ENQUEUE_IN_PROGRESS_OPERATIONS=false. The new
// process must not resume the operations that the previous process accepted.
func TestOperationsOfPreviousProcessAreNotResumed(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		const creation = 300 * time.Millisecond

		memory := harness.StartGarden(t, creation)
		settings := harness.ProvisionerSettings(database(t, "provisioner"))

		harness.InjectClusterFaults(t, memory, harness.StuckClusters())

		previous := startStandalone(t, memory.Client(), settings)
		started, unwanted := previous.order("c-begun"), previous.order("c-unwanted")
		previous.waitForState(started.ID, provisionerclient.StateInProgress)
		previous.waitForState(unwanted.ID, provisionerclient.StateInProgress)
		harness.Until(t, "the Shoots", func() bool { return len(harness.Shoots(t, memory)) == 2 })
		previous.stop()
		harness.InjectClusterFaults(t, memory, nil)

		// Without workers, a Provisioner accepts orders but never starts the operations.
		withoutWorkers := settings
		withoutWorkers.Engine.Workers = 0

		accepting := startStandalone(t, memory.Client(), withoutWorkers)
		waiting := accepting.order("c-waiting")
		accepting.stop()

		withoutResuming := settings
		withoutResuming.EnqueueInProgressOperations = false

		next := startStandalone(t, memory.Client(), withoutResuming)

		// The new process runs two operations one after the other. When they have ended, the earlier clusters are ready and
		// their operations are due.
		for _, name := range []string{"c-own", "c-own-too"} {
			next.waitForState(next.order(name).ID, provisionerclient.StateSucceeded)
		}

		for id, want := range map[string]provisionerclient.State{
			started.ID: provisionerclient.StateInProgress, unwanted.ID: provisionerclient.StateInProgress, waiting.ID: provisionerclient.StatePending,
		} {
			if got := next.state(id); got != want {
				t.Errorf("an operation of the previous process is %s, want %s: the new process must not resume it", got, want)
			}
		}

		// The new process runs the removal of a runtime, because it has accepted the removal itself. The removal cancels an
		// operation of the previous process.
		removal, err := next.client.DeprovisionRuntime(t.Context(), provisionerclient.Caller{Tenant: "tenant"}, unwanted.RuntimeID)
		if err != nil {
			t.Fatal(err)
		}

		next.waitForState(removal, provisionerclient.StateSucceeded)
		next.waitForState(unwanted.ID, provisionerclient.StateFailed)
		next.stop()

		last := startStandalone(t, memory.Client(), settings)
		last.waitForState(started.ID, provisionerclient.StateSucceeded)
		last.waitForState(waiting.ID, provisionerclient.StateSucceeded)
	})
}
