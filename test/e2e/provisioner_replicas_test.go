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

// scenarioCount is the number of runtimes in a round, all ordered concurrently.
const scenarioCount = 20

// TestProvisionerReplicas runs operations of all kinds on runtimes while the replicas of the Provisioner are killed,
// frozen and stopped, PostgreSQL is restarted and responses of Director are lost. Every accepted operation must succeed, and each runtime
// must match its last operation: in the Provisioner's rows, in Gardener, in its cluster and in Director.
//
// TEST_SEED repeats a run; SOAK_DURATION adds rounds with new plans for that long.
func TestProvisionerReplicas(t *testing.T) {
	t.Parallel()

	seed, duration := harness.Seed(t), harness.SoakDuration(t)

	releases, err := filepath.Abs(filepath.Join(root, "resources", "releases"))
	if err != nil {
		t.Fatal(err)
	}

	f := newProvisioners(t, "simulated", "APP_LEASE_DURATION="+lease.String(), "APP_SHUTDOWN_DELAY=0s", "APP_WORKERS=20",
		"APP_KYMA_RELEASES_PATH="+releases)

	var left []*scenario

	began := time.Now()

	for round := range uint64(1000) {
		left = f.scenarios(seed+round, left)

		if f.Failed() || time.Since(began) > duration {
			return
		}
	}
}

// kinds returns the kinds of all operations of the Provisioner.
func kinds() []string {
	var all []string
	for _, each := range service.Processes(service.DefaultConfig(), service.Parts{}) {
		all = append(all, each.Kind)
	}

	return all
}

// scenarios runs a round: it removes the runtimes of the round before, runs new scenarios under faults, checks the results, and returns
// the scenarios whose runtimes remain.
func (f *fleet) scenarios(seed uint64, before []*scenario) (left []*scenario) {
	f.Helper()

	random := rand.New(rand.NewPCG(seed, seed))
	scenarios := newScenarios(random, fmt.Sprintf("w%04x", seed&0xffff), scenarioCount, kinds())

	for _, w := range scenarios {
		w.cluster = f.connect(w.name)
	}

	for _, w := range before {
		w.remove(random)
		w.actions = w.actions[len(w.actions)-1:]
	}

	scenarios = append(before, scenarios...)
	toDo := 0

	for _, w := range scenarios {
		toDo += len(w.actions)
	}

	plan := f.plan(random, toDo)

	f.Logf("TEST_SEED=%d", seed)

	for _, b := range plan {
		f.Log(b)
	}

	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	defer f.provisionerDB.explain()

	for _, call := range []string{"registerRuntime", "updateRuntime", "requestOneTimeTokenForRuntime", "unregisterRuntime"} {
		f.director.Inject(fakedirector.Fault{Operation: call, Lost: true, Times: 2})
	}

	began := time.Now()
	load := f.start(ctx, scenarios)

	defer load.customers.Wait()
	defer cancel()

	for _, b := range plan {
		f.until(b.String(), func() bool { return int(load.done.Load()) >= b.after })

		if f.Failed() {
			break
		}

		f.inject(b)
	}

	load.customers.Wait()
	f.Logf("%d operations of %d runtimes ended within %s", toDo, len(scenarios), time.Since(began).Round(time.Millisecond))

	return f.finish(scenarios)
}

// start runs a customer for each scenario.
func (f *fleet) start(ctx context.Context, scenarios []*scenario) *load {
	l := &load{}

	for _, w := range scenarios {
		l.customers.Go(func() {
			toDo := int64(len(w.actions))

			err := f.scenario(ctx, w, func() {
				toDo--

				l.done.Add(1)
			})
			if err != nil && ctx.Err() == nil {
				f.Errorf("%s, runtime %s: %v", w.name, w.runtimeID, err)
			}

			l.done.Add(toDo) // the remaining actions will not happen
		})
	}

	return l
}

// finish waits until all operations have ended, compares the customers' view with all systems, and returns the scenarios whose
// runtimes remain.
func (f *fleet) finish(scenarios []*scenario) []*scenario {
	f.Helper()
	f.until("every operation to end", func() bool { return f.provisionerDB.unfinished() == 0 })
	f.tidyUp()
	f.Logf("the Provisioner's timelines: %s; %s", f.provisionerDB.outcomes(), f.provisionerDB.troubles())

	records := f.provisionerDB.all()
	f.provisionerDB.check(records)

	covered := map[string]bool{}
	for _, record := range records {
		covered[record.Kind] = true
	}

	f.same("kinds of operations", kinds(), slices.Collect(maps.Keys(covered)))

	left := slices.DeleteFunc(slices.Clone(scenarios), func(w *scenario) bool { return !w.stays() })
	live := make([]string, 0, len(left))

	for _, w := range left {
		live = append(live, w.runtimeID+" "+w.name)
	}

	for _, w := range scenarios {
		if w.releasesServices && !w.released.Load() {
			f.Errorf("%s, runtime %s: the cluster was removed before its service was released", w.name, w.runtimeID)
		}

		for _, id := range w.accepted {
			switch record := records[id]; {
			case record.ID == "":
				f.Errorf("%s: accepted operation %s is missing", w.name, id)
			case record.State == process.Canceled && !slices.Contains(w.abandoned, id):
				f.Errorf("%s: %s was canceled without a reason", w.name, record.Kind)
			}
		}
	}

	f.checkRuntimes(live)

	if !f.Failed() { // a failed round may lack some kinds
		f.checkFinalStates(left)
	}

	return left
}
