//go:build garden

package bundles

import (
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/test/harness"
)

// writes returns the points at which replicas fail: calls that change something.
func writes(points []string) (found []string) {
	for _, point := range points {
		changes := strings.HasPrefix(point, "target ") || strings.HasPrefix(point, "hub PUT") || strings.HasPrefix(point, "hub DELETE")
		if changes && strings.Contains(point, "received") && !strings.Contains(point, " GET ") && !strings.Contains(point, " dry ") {
			found = append(found, point)
		}
	}

	return found
}

// TestLeaderKilled kills one of three replicas, and then the leader during a pivot. Content must be served all the time.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()

	pivot, random := scenarios()[1], rand.New(rand.NewPCG(harness.Seed(t), 0))

	atPoints(t, writes(pivot.run(t, "", nil)), 1, random, true, func(t *testing.T, point string) bool {
		f := newFixture(t, 3, false)
		pivot.prepare(f)

		stop := f.observe(false)

		f.gate.record(point, func() bool { return f.replicas[f.leader.Load()].kill() })
		f.replicas[(f.leader.Load()+1)%3].kill()
		pivot.act(f)

		struck := f.reaches(pivot)
		bundletest.Eventually(f, func() string { return pivot.end(f) })

		if stop() == 0 {
			t.Error("the content was never served")
		}

		return struck
	})
}

// TestLeaderFrozen freezes the leader of three replicas during a pivot, at a write that it has sent. Another replica becomes the
// leader and pivots to a third version. Then the write arrives and the former leader continues. Neither may change anything.
func TestLeaderFrozen(t *testing.T) {
	t.Parallel()

	pivot, random := scenarios()[1], rand.New(rand.NewPCG(harness.Seed(t), 0))

	atPoints(t, writes(pivot.run(t, "", nil)), 1, random, true, func(t *testing.T, point string) bool {
		f := newFixture(t, 3, false)
		pivot.prepare(f)
		f.observe(false)

		thawed := make(chan *replica, 1)
		released := make(chan struct{})
		release := sync.OnceFunc(func() { close(released) })

		t.Cleanup(release)
		f.gate.record(point, func() bool {
			frozen := f.replicas[f.leader.Load()]
			f.frozen.Store(frozen)
			frozen.running().Signal(syscall.SIGSTOP)
			thawed <- frozen
			<-released

			return true
		})
		pivot.act(f)

		if !f.reaches(pivot) {
			return false
		}

		former := receive(f, point, thawed)
		process := former.running()

		t.Cleanup(func() { process.Signal(syscall.SIGCONT) })

		third := func() string { return f.installed("3", v1alpha1.ReasonInstallationSucceeded) }

		f.deploy(f.template(f.class(), f.image("3", f.manifests("3"))))
		bundletest.Eventually(f, third)

		release()
		process.Signal(syscall.SIGCONT)
		f.frozen.Store(nil)
		receive(f, "the end of the former leader, which has lost its lease", process.Ended)
		bundletest.Eventually(f, third)

		return true
	})
}
