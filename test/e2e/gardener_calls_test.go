package e2e

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestParallelRuntimesLimitGardenerCalls provisions runtimes concurrently and counts the calls: one watch
// reports every change, and nothing polls Gardener in between.
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
	settings.Engine.LeaseDuration = time.Minute // so that a slow machine does not repeat calls

	counted, calls := fakegarden.Counted(memory.Client())
	l := startStandalone(t, counted, settings)

	var operations []string
	for i := range runtimes {
		operations = append(operations, l.order(fmt.Sprintf("c-%d", i)).ID)
	}

	for _, id := range operations {
		l.until(id, provisionerclient.StateSucceeded)
	}

	got := calls.Counts()
	t.Logf("%d runtimes, %d changes: %v", runtimes, reported.Load(), got)

	for verb, limit := range map[string]struct {
		reason string
		most   int
	}{
		"patch":  {"one apply of the Shoot, and one of its ConfigMap", 2 * runtimes},
		"get":    {"one for each reported change, and a few more for each runtime, before its order and after its creation", int(reported.Load()) + 5*runtimes},
		"create": {"a kubeconfig to check that the cluster responds", runtimes},
		"list":   {"the watch starts with one; the search for orphans and their ConfigMaps needs more", 10},
		"watch":  {"one for all runtimes", 2},
		"update": {"nothing is updated", 0},
		"delete": {"nothing is deleted", 0},
	} {
		if got[verb] > limit.most {
			t.Errorf("%s: %s: want at most %d calls, got %d", verb, limit.reason, limit.most, got[verb])
		}
	}
}
