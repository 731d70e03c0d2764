//go:build garden

package bundles

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/test/harness"
)

// sample is the number of points per scenario that TestKilled tests if SOAK_DURATION is not set.
const sample = 4

// TestKilled runs each scenario once to find its points, and then once for each tested point, at which it kills the bundler.
func TestKilled(t *testing.T) {
	t.Parallel()

	seed := harness.Seed(t)

	for _, scenario := range scenarios() {
		t.Run(scenario.name, func(t *testing.T) {
			t.Parallel()

			atPoints(t, scenario.run(t, "", nil), sample, randomOf(seed, scenario.name), true, func(t *testing.T, point string) bool {
				return scenario.run(t, point, killed) == nil
			})
		})
	}
}

// tally counts runs, and the runs in which the point has occurred. Not all points need to run, because -run may select only some
// of them.
type tally struct{ ran, struck atomic.Int64 }

// add counts a run. struck reports whether its point has occurred.
func (c *tally) add(struck bool) {
	c.ran.Add(1)

	if struck {
		c.struck.Add(1)
	}
}

// check verifies that at least the wanted number of points have occurred. Not all need to occur, because the order of concurrent calls
// varies.
func (c *tally) check(t *testing.T, wanted int64) {
	t.Helper()
	t.Logf("%d of %d points have occurred", c.struck.Load(), c.ran.Load())

	if c.struck.Load() < wanted {
		t.Errorf("only %d of %d points have occurred, want %d", c.struck.Load(), c.ran.Load(), wanted)
	}
}

// atPoints calls try for the given number of points, each in a subtest. The order of concurrent calls varies, so not all points occur
// in every run. atPoints then calls try for other points, one after the other, until half of the number, and at least one, have
// occurred. If SOAK_DURATION is set, all points must occur. try reports whether its point has occurred. If parallel is set,
// the calls for the given number of points run at the same time.
func atPoints(t *testing.T, points []string, number int, random *rand.Rand, parallel bool, try func(t *testing.T, point string) (struck bool)) {
	t.Helper()

	if len(points) == 0 {
		t.Fatal("there are no points")
	}

	random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })

	if harness.SoakDuration(t) > 0 {
		number = len(points)
	}

	number = min(number, len(points))

	var counted tally

	t.Run("at", func(t *testing.T) {
		for _, point := range points[:number] {
			t.Run(point, func(t *testing.T) {
				if parallel {
					t.Parallel()
				}

				counted.add(try(t, point))
			})
		}
	})

	wanted := max(1, counted.ran.Load()/2)

	for _, point := range points[number:] {
		if counted.struck.Load() >= wanted || t.Failed() {
			break
		}

		t.Run("instead at "+point, func(t *testing.T) { counted.add(try(t, point)) })
	}

	counted.check(t, wanted)
}

// randomOf returns the source that selects the points of a scenario.
func randomOf(seed uint64, scenario string) *rand.Rand {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(scenario))

	return rand.New(rand.NewPCG(seed, hash.Sum64()))
}

// killed returns a strike function that kills the bundler.
func killed(f *fixture) func() (alive bool) { return f.replicas[0].kill }

// run runs the scenario, and at the given point calls the function that strike returns. It returns the points of the run, or nil
// if the given point has occurred.
func (s scenario) run(t *testing.T, point string, strike func(f *fixture) func() (alive bool)) []string {
	t.Helper()

	f := newFixture(t, max(1, s.replicas), s.onHub)
	if s.prepare != nil {
		s.prepare(f)
	}

	stop := f.observe(false)

	if strike == nil {
		f.gate.record("", nil)
	} else {
		f.gate.record(point, strike(f))
	}

	s.act(f)
	bundletest.Eventually(f, func() string { return s.end(f) })

	points := f.gate.found()

	stop()

	select {
	case <-f.gate.struck:
		return nil
	default:
		return slices.Clone(points)
	}
}
