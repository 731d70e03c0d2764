package e2e

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestParallelRuntimesLimitGardenerCalls checks the maximum number of calls to Gardener, by verb, while many runtimes are
// provisioned concurrently. One watch reports the changes of all Shoots, so the Provisioner does not need to poll.
func TestParallelRuntimesLimitGardenerCalls(t *testing.T) {
	const (
		runtimes = 50
		creation = 2 * time.Second
	)

	memory := harness.StartGarden(t, creation)
	changes, err := memory.Client().Watch(t.Context(), &gardencorev1beta1.ShootList{})
	if err != nil {
		t.Fatal(err)
	}

	var reported atomic.Int64

	harness.Run(t, func(ctx context.Context) error {
		context.AfterFunc(ctx, changes.Stop)

		for range changes.ResultChan() {
			reported.Add(1)
		}

		return nil
	})

	settings := harness.ProvisionerSettings(harness.SQLite(t, "provisioner"))
	settings.Engine.LeaseDuration = time.Minute // so that no lease expires on a slow machine, which would repeat calls

	counted, calls, err := memory.Counted()
	if err != nil {
		t.Fatal(err)
	}

	p := startStandalone(t, counted, settings)

	var operations []string
	for i := range runtimes {
		operations = append(operations, p.order(fmt.Sprintf("c-%d", i)).ID)
	}

	for _, id := range operations {
		p.waitForState(id, provisionerclient.StateSucceeded)
	}

	got := calls.Counts()
	t.Logf("%d runtimes, %d changes: %v", runtimes, reported.Load(), got)

	for verb, want := range map[string]struct {
		reason string
		most   int
	}{
		"patch":  {"one apply for each Shoot, and one for its ConfigMap", 2 * runtimes},
		"get":    {"one for each reported change, and a few more for each runtime before and after its creation", int(reported.Load()) + 5*runtimes},
		"create": {"one kubeconfig for each runtime, to check that its cluster responds", runtimes},
		"list":   {"one at the start of the watch, and a few to find orphaned Shoots and ConfigMaps", 10},
		"watch":  {"one watch for all runtimes", 2},
		"update": {"nothing is updated", 0},
		"delete": {"nothing is deleted", 0},
	} {
		if got[verb] > want.most {
			t.Errorf("%s: %s: want at most %d calls, got %d", verb, want.reason, want.most, got[verb])
		}
	}
}
