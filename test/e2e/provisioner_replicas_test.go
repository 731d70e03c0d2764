//go:build garden

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// scenarioCount is the number of scenarios in a round. All scenarios of a round run concurrently.
const scenarioCount = 20

// TestProvisionerReplicas runs operations of every kind while replicas of the Provisioner are killed, frozen and stopped,
// PostgreSQL is restarted, and responses of Director are lost. Every accepted operation must succeed. Each runtime must match
// its last operation: in the Provisioner's database, in Gardener, in its cluster and in Director.
//
// TEST_SEED sets the seed of the first round, to repeat a run. The test starts new rounds, each with the next seed, until
// SOAK_DURATION has passed.
func TestProvisionerReplicas(t *testing.T) {
	t.Parallel()

	seed, duration := harness.Seed(t), harness.SoakDuration(t)

	releases, err := filepath.Abs(filepath.Join(harness.Root, "resources", "releases"))
	if err != nil {
		t.Fatal(err)
	}

	f := newProvisioners(t, "simulated", "APP_LEASE_DURATION="+lease.String(), "APP_SHUTDOWN_DELAY=0s", "APP_WORKERS=20",
		"APP_KYMA_RELEASES_PATH="+releases)

	var remaining []*scenario

	began := time.Now()

	for round := range uint64(1000) {
		remaining = f.runScenarios(seed+round, remaining)

		if f.Failed() || time.Since(began) > duration {
			return
		}
	}
}

// kinds returns the kinds of all operations that the Provisioner accepts.
func kinds() []string {
	var all []string
	for _, each := range service.Processes(service.DefaultConfig(), service.Parts{}) {
		all = append(all, each.Kind)
	}

	return all
}

// runScenarios runs a round: it removes the runtimes of the previous round, runs new scenarios under faults, and checks the
// results. It returns the scenarios whose runtimes remain.
func (f *fleet) runScenarios(seed uint64, before []*scenario) (remaining []*scenario) {
	f.Helper()

	random := rand.New(rand.NewPCG(seed, seed))
	scenarios := newScenarios(random, fmt.Sprintf("w%04x", seed&0xffff), scenarioCount, kinds())

	for _, s := range scenarios {
		s.cluster = f.clusterConnector(s.name)
	}

	for _, s := range before {
		s.remove(random)
		s.actions = s.actions[len(s.actions)-1:]
	}

	scenarios = append(before, scenarios...)
	total := 0

	for _, s := range scenarios {
		total += len(s.actions)
	}

	faults := f.drawFaults(random, total)

	f.Logf("TEST_SEED=%d", seed)

	for _, next := range faults {
		f.Log(next)
	}

	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	defer f.provisionerDB.logUnfinished()

	for _, call := range []string{"registerRuntime", "updateRuntime", "requestOneTimeTokenForRuntime", "unregisterRuntime"} {
		f.director.Inject(fakedirector.Fault{Operation: call, Lost: true, Times: 2})
	}

	began := time.Now()
	load := f.startScenarios(ctx, scenarios)

	defer load.customers.Wait()
	defer cancel()

	for _, next := range faults {
		f.until(next.String(), func() bool { return int(load.done.Load()) >= next.after })

		if f.Failed() {
			break
		}

		f.inject(next)
	}

	load.customers.Wait()
	f.Logf("%d operations of %d runtimes ended within %s", total, len(scenarios), time.Since(began).Round(time.Millisecond))

	return f.checkScenarios(scenarios)
}

// startScenarios starts a customer for each scenario.
func (f *fleet) startScenarios(ctx context.Context, scenarios []*scenario) *load {
	l := &load{}

	for _, s := range scenarios {
		l.customers.Go(func() {
			remaining := int64(len(s.actions))

			err := f.runScenario(ctx, s, func() {
				remaining--

				l.done.Add(1)
			})
			if err != nil && ctx.Err() == nil {
				f.Errorf("%s, runtime %s: %v", s.name, s.runtimeID, err)
			}

			l.done.Add(remaining) // after a failure the customer skips the remaining actions
		})
	}

	return l
}

// checkScenarios waits until all operations have ended and compares the results that the customers saw with the state of all
// systems. It returns the scenarios whose runtimes remain.
func (f *fleet) checkScenarios(scenarios []*scenario) []*scenario {
	f.Helper()
	f.until("every operation to end", func() bool { return f.provisionerDB.unfinished() == 0 })
	f.removeOrphans()
	f.Logf("the Provisioner's timelines: %s; %s", f.provisionerDB.outcomes(), f.provisionerDB.retryReasons())

	records := f.provisionerDB.records()
	f.provisionerDB.checkTimelines(records)

	covered := map[string]bool{}
	for _, record := range records {
		covered[record.Kind] = true
	}

	f.wantEqual("kinds of operations", kinds(), slices.Collect(maps.Keys(covered)))

	remaining := slices.DeleteFunc(slices.Clone(scenarios), func(s *scenario) bool { return !s.keepsRuntime() })
	live := make([]string, 0, len(remaining))

	for _, s := range remaining {
		live = append(live, s.runtimeID+" "+s.name)
	}

	for _, s := range scenarios {
		if s.releasesServices && !s.released.Load() {
			f.Errorf("%s, runtime %s: the cluster was removed before the service catalog released its service", s.name, s.runtimeID)
		}

		for _, id := range s.accepted {
			switch record := records[id]; {
			case record.ID == "":
				f.Errorf("%s: accepted operation %s is missing", s.name, id)
			case record.State == process.Canceled && !slices.Contains(s.abandoned, id):
				f.Errorf("%s: %s was canceled without a reason", s.name, record.Kind)
			}
		}
	}

	f.checkRuntimes(live)

	if !f.Failed() { // after a failure, the last operation of a runtime may be missing
		f.checkFinalStates(remaining)
	}

	return remaining
}
