package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
)

// TestManyRuntimesAtOnceDoNotStormGardener makes runtimes at once whose clusters take a while, and counts the calls: Gardener tells by
// one watch what changes, and is not asked in between.
func TestManyRuntimesAtOnceDoNotStormGardener(t *testing.T) {
	const (
		runtimes = 50
		creation = 2 * time.Second
	)

	memory, err := fakegarden.Open(t.Context(), fakegarden.Options{
		Dir: filepath.Join(t.TempDir(), "garden"), ClusterCreation: creation, Log: logging.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}

	run(t, memory.Run)

	changes, err := memory.Client().Watch(t.Context(), &gardencorev1beta1.ShootList{})
	if err != nil {
		t.Fatal(err)
	}

	var told atomic.Int64

	run(t, func(ctx context.Context) error {
		context.AfterFunc(ctx, changes.Stop)

		for range changes.ResultChan() {
			told.Add(1)
		}

		return nil
	})

	settings := provisioner.DefaultConfig()
	settings.Address, settings.StatusAddress, settings.ShutdownDelay = "127.0.0.1:0", "127.0.0.1:0", 0
	settings.Database = onSQLite(t, "provisioner")
	settings.Gardener.Project = fakegarden.DefaultProject
	settings.Engine.LeaseDuration = time.Minute // a machine that stands still for a while does not have calls made again

	counted, calls := fakegarden.Counted(memory.Client())
	l := startLone(t, counted, settings)

	var operations []string
	for i := range runtimes {
		operations = append(operations, l.order(fmt.Sprintf("c-%d", i)).ID)
	}

	for _, id := range operations {
		l.until(id, provisionerclient.StateSucceeded)
	}

	got := calls.Counts()
	t.Logf("%d runtimes, %d changes: %v", runtimes, told.Load(), got)

	for verb, limit := range map[string]struct {
		reason string
		most   int
	}{
		"patch":  {"one apply of the Shoot, and one of what stands beside it", 2 * runtimes},
		"get":    {"one for each change that is told, and few others for each runtime: before it is ordered, when it is done", int(told.Load()) + 5*runtimes},
		"create": {"a kubeconfig to see that the cluster answers", runtimes},
		"list":   {"the watch begins with one, the look for orphans and what stands beside them are others", 10},
		"watch":  {"one for all", 2},
		"update": {"nothing is updated", 0},
		"delete": {"nothing is deleted", 0},
	} {
		if got[verb] > limit.most {
			t.Errorf("%s: %s: want at most %d calls, got %d", verb, limit.reason, limit.most, got[verb])
		}
	}
}
