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
)

// walkCount is how many runtimes are ordered in a round, all at the same time.
const walkCount = 20

// TestProvisionerReplicas has customers take runtimes through all kinds of operations while the replicas of the Provisioner are killed,
// frozen and stopped, PostgreSQL is restarted and answers of Director are lost. In the end every operation that was accepted has done what it should, and each runtime
// is what its last operation made of it: in the Provisioner's rows, in Gardener, inside of its cluster and in Director.
//
// STORY_SEED repeats a plan, SOAK_DURATION goes on with new plans until that time has passed.
func TestProvisionerReplicas(t *testing.T) {
	t.Parallel()

	seed, duration := storySettings(t)

	releases, err := filepath.Abs(filepath.Join(root, "resources", "releases"))
	if err != nil {
		t.Fatal(err)
	}

	f := newProvisioners(t, "simulated", "APP_LEASE_DURATION="+lease.String(), "APP_SHUTDOWN_DELAY=0s", "APP_WORKERS=20",
		"APP_KYMA_RELEASES_PATH="+releases)

	var left []*walk

	began := time.Now()

	for round := range uint64(1000) {
		left = f.walks(seed+round, left)

		if f.Failed() || time.Since(began) > duration {
			return
		}
	}
}

// kinds are those of all operations that a Provisioner can carry out.
func kinds() []string {
	var all []string
	for _, each := range service.Processes(service.DefaultConfig(), service.Parts{}) {
		all = append(all, each.Kind)
	}

	return all
}

// walks has the runtimes of the round before removed and new ones walk, strikes meanwhile, checks all that there is, and returns the walks
// whose runtimes are left.
func (f *fleet) walks(seed uint64, before []*walk) (left []*walk) {
	f.Helper()

	random := rand.New(rand.NewPCG(seed, seed))
	walks := newWalks(random, fmt.Sprintf("w%04x", seed&0xffff), walkCount, kinds())

	for _, w := range walks {
		w.cluster = f.connect(w.name)
	}

	for _, w := range before {
		w.remove(random)
		w.moves = w.moves[len(w.moves)-1:]
	}

	walks = append(before, walks...)
	toDo := 0

	for _, w := range walks {
		toDo += len(w.moves)
	}

	plan := f.plan(random, toDo)

	f.Logf("STORY_SEED=%d", seed)

	for _, b := range plan {
		f.Log(b)
	}

	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	defer f.provisionerBooks.explain()

	for _, call := range []string{"registerRuntime", "updateRuntime", "requestOneTimeTokenForRuntime", "unregisterRuntime"} {
		f.director.Order(fakedirector.Fault{Operation: call, Lost: true, Times: 2})
	}

	began := time.Now()
	load := f.start(ctx, walks)

	defer load.customers.Wait()
	defer cancel()

	for _, b := range plan {
		f.until(b.String(), func() bool { return int(load.done.Load()) >= b.after })

		if f.Failed() {
			break
		}

		f.strike(b)
	}

	load.customers.Wait()
	f.Logf("%d operations of %d runtimes were carried out within %s", toDo, len(walks), time.Since(began).Round(time.Millisecond))

	return f.arrive(walks)
}

// start has a customer for each walk.
func (f *fleet) start(ctx context.Context, walks []*walk) *load {
	l := &load{}

	for _, w := range walks {
		l.customers.Go(func() {
			toDo := int64(len(w.moves))

			err := f.walk(ctx, w, func() {
				toDo--

				l.done.Add(1)
			})
			if err != nil && ctx.Err() == nil {
				f.Errorf("%s, runtime %s: %v", w.name, w.runtimeID, err)
			}

			l.done.Add(toDo) // nobody waits for those any more
		})
	}

	return l
}

// arrive waits until nothing is left to do, checks what the customers were told against all that there is, and returns the walks whose
// runtimes are left.
func (f *fleet) arrive(walks []*walk) []*walk {
	f.Helper()
	f.until("every operation to end", func() bool { return f.provisionerBooks.unfinished() == 0 })
	f.tidyUp()
	f.Logf("the Provisioner's timelines: %s; %s", f.provisionerBooks.outcomes(), f.provisionerBooks.troubles())

	records := f.provisionerBooks.all()
	f.provisionerBooks.check(records)

	played := map[string]bool{}
	for _, record := range records {
		played[record.Kind] = true
	}

	f.same("kinds of operations", kinds(), slices.Collect(maps.Keys(played)))

	left := slices.DeleteFunc(slices.Clone(walks), func(w *walk) bool { return !w.stays() })
	live := make([]string, 0, len(left))

	for _, w := range left {
		live = append(live, w.runtimeID+" "+w.name)
	}

	for _, w := range walks {
		if w.givesBack && !w.gaveBack.Load() {
			f.Errorf("%s, runtime %s: the cluster went before its service was given back", w.name, w.runtimeID)
		}

		for _, id := range w.accepted {
			switch record := records[id]; {
			case record.ID == "":
				f.Errorf("%s: operation %s was accepted and is not there", w.name, id)
			case record.State == process.Canceled && !slices.Contains(w.abandoned, id):
				f.Errorf("%s: %s was canceled by nobody", w.name, record.Kind)
			}
		}
	}

	f.checkRuntimes(live)

	if !f.Failed() { // else there may be none to compare
		f.checkArrivals(left)
	}

	return left
}
