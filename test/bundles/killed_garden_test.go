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

	seed, soak := harness.Seed(t), harness.SoakDuration(t) > 0

	for _, scenario := range scenarios() {
		t.Run(scenario.name, func(t *testing.T) {
			t.Parallel()

			points := scenario.run(t, "", nil)
			if len(points) == 0 {
				t.Fatal("the scenario has no points")
			}

			if !soak {
				points = sampleOf(points, sample, seed, scenario.name)
			}

			var counted tally

			t.Run("at", func(t *testing.T) {
				for _, point := range points {
					t.Run(point, func(t *testing.T) {
						t.Parallel()

						counted.add(scenario.run(t, point, killed) == nil)
					})
				}
			})

			counted.check(t)
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

// check verifies that at least half of the points have occurred. Not all need to occur, because the order of concurrent calls
// varies.
func (c *tally) check(t *testing.T) {
	t.Helper()
	t.Logf("%d of %d points have occurred", c.struck.Load(), c.ran.Load())

	if c.struck.Load() < c.ran.Load()/2 {
		t.Errorf("only %d of %d points have occurred", c.struck.Load(), c.ran.Load())
	}
}

// sampleOf returns a random sample of the points of a scenario.
func sampleOf(points []string, number int, seed uint64, scenario string) []string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(scenario))
	rand.New(rand.NewPCG(seed, hash.Sum64())).Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })

	return points[:min(number, len(points))]
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
