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

	for _, scene := range scenes {
		t.Run(scene.Name, func(t *testing.T) {
			undisturbed, possible := rehearse(t, scene)

			for _, fault := range possible {
				t.Run(fault.String(), func(t *testing.T) {
					got, _ := run(t, scene, []Fault{fault})
					same(t, undisturbed, got)
				})
			}
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

			for range count {
				plan := []Fault{possible[random.IntN(len(possible))], possible[random.IntN(len(possible))]}

				t.Run(name(plan), func(t *testing.T) {
					got, _ := run(t, scene, plan)
					same(t, undisturbed, got)
				})
			}
		})
	}
}

// rehearse plays the story undisturbed.
func rehearse[D any](t *testing.T, scene Scene[D]) (outcome, []Fault) {
	t.Helper()

	undisturbed, possible := run(t, scene, nil)
	if t.Failed() {
		t.Fatal("the story fails without a fault")
	}

	if len(possible) == 0 {
		t.Fatal("the story has no fault point: does it call Play.Begin?")
	}

	return undisturbed, possible
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
