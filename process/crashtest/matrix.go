package crashtest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/environment-broker/environment-broker/process"
)

// Matrix plays every scene with each single fault in turn.
func Matrix[D any](t *testing.T, scenes ...Scene[D]) {
	t.Helper()
	Sample(t, 1, scenes...)
}

// Sample plays every scene with each nth single fault.
func Sample[D any](t *testing.T, nth int, scenes ...Scene[D]) {
	t.Helper()

	for _, scene := range scenes {
		t.Run(scene.Name, func(t *testing.T) {
			undisturbed, possible := rehearse(t, scene)

			var plans [][]Fault
			for i := 0; i < len(possible); i += nth {
				plans = append(plans, possible[i:i+1])
			}

			all(t, scene, undisturbed, plans)
		})
	}
}

// Pairs plays every scene with so many pairs of faults, chosen by the seed. The second one of a pair counts its calls from the begin
// of the story too, so it may strike the replica that replaced the first.
func Pairs[D any](t *testing.T, seed uint64, count int, scenes ...Scene[D]) {
	t.Helper()

	for _, scene := range scenes {
		t.Run(scene.Name, func(t *testing.T) {
			undisturbed, possible := rehearse(t, scene)
			random := rand.New(rand.NewPCG(seed, uint64(len(possible))))

			var plans [][]Fault
			for range count {
				plans = append(plans, []Fault{possible[random.IntN(len(possible))], possible[random.IntN(len(possible))]})
			}

			all(t, scene, undisturbed, plans)
		})
	}
}

// all plays the scene with each plan. What happens at the same moment may happen in either order, so a story may be shorter than the
// one that was rehearsed, and its last fault may not come about; most have to.
func all[D any](t *testing.T, scene Scene[D], undisturbed outcome, plans [][]Fault) {
	t.Helper()

	played, struck := 0, 0

	for _, plan := range plans {
		t.Run(name(plan), func(t *testing.T) {
			came, faults := run(t, scene, plan)
			same(t, undisturbed, came)

			played++

			if faults.happened > 0 {
				struck++
			}
		})
	}

	if few := played * 3 / 4; struck < few {
		t.Errorf("of %d runs %d had a fault: the story is another one each time", played, struck)
	}
}

// rehearse plays the story undisturbed.
func rehearse[D any](t *testing.T, scene Scene[D]) (outcome, []Fault) {
	t.Helper()

	undisturbed, faults := run(t, scene, nil)
	if t.Failed() {
		t.Fatal("the story fails without a fault")
	}

	if len(faults.possible) == 0 {
		t.Fatal("the story has no fault point: does it call Play.Begin?")
	}

	return undisturbed, faults.possible
}

// Covers fails the test unless every registered process has a scene.
func Covers[D any](t *testing.T, processes []process.Process[D], scenes ...Scene[D]) {
	t.Helper()

	for _, registered := range processes {
		if !slices.ContainsFunc(scenes, func(scene Scene[D]) bool { return scene.Kind == registered.Kind }) {
			t.Errorf("the process %q has no scene in the crash matrix: add one with Kind %q that accepts such an operation and says what "+
				"there has to be outside when it has ended", registered.Kind, registered.Kind)
		}
	}
}
