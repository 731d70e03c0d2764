package crashtest

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// Scenario describes operations that run once for each fault. D is the data of the operations. The runs must be deterministic,
// except for the order of concurrent events.
type Scenario[D any] struct {
	// Name is the prefix of the subtests' names.
	Name string
	// Kind is the kind of the process under test.
	Kind string
	// UndoneByCaller names calls that take effect too late if their replica is frozen, so that this replica must undo the effect
	// itself. If a second fault kills the replica, the effect stays; no run therefore combines these two faults.
	UndoneByCaller []string
	// Expected is how the run without faults must end, in YAML: the states of the operations that Script returns, and the state of the
	// upstreams without empty fields. If it is wrong, the test prints the outcome of that run.
	Expected string
	// Open builds the environment of one run, in a synctest bubble.
	Open func(t *testing.T) Env[D]
}

// Env is the environment of one run: a database and fake upstreams.
type Env[D any] struct {
	// Store is the store that the proxies forward to. Calls to Store itself have no fault points.
	Store *operations.Store
	// Processes returns all processes of the service, as a replica registers them. They call upstreams through the proxy.
	Processes func(proxy *Proxy) []process.Process[D]
	// Background, if set, returns the background work of a replica, which reaches its rows and the upstreams through the proxy.
	Background func(proxy *Proxy) []lifecycle.Part
	// AnyData excludes the data of the operations from the comparison, for scenarios whose data depends on the time of the
	// fault.
	AnyData bool
	// MaySkip names steps that a run may record as not completed, because the fault left something that they cannot remove.
	MaySkip []string
	// Random, if set, matches random strings, which are not compared. UUIDs and times are never compared.
	Random *regexp.Regexp
	// Script runs the scenario. It returns the operations whose outcome must be the same in every run. Other operations only have
	// to end.
	Script func(run *Run[D]) (operationIDs []string)
	// Upstream returns the state of the upstreams after the run, which must be the same in every run. It fails the test for
	// forbidden states, such as two runtimes for one instance.
	Upstream func() any
}

// Sample runs every scenario once for every nth possible fault, or for each one if nth is 1. The seed selects the first of them, so runs
// with different seeds inject different faults. Every scenario runs with at least one fault.
func Sample[D any](t *testing.T, seed uint64, nth int, scenarios ...Scenario[D]) {
	t.Helper()

	each(t, scenarios, func(possible []Fault) [][]Fault {
		var plans [][]Fault
		for i := randomOf(seed, possible).IntN(min(nth, len(possible))); i < len(possible); i += nth {
			plans = append(plans, possible[i:i+1])
		}

		return plans
	})
}

// Pairs runs every scenario with count pairs of faults, which the seed selects. Both faults count calls from the start of the
// run, so the second fault can affect the replacement of the replica that the first fault killed.
func Pairs[D any](t *testing.T, seed uint64, count int, scenarios ...Scenario[D]) {
	t.Helper()

	each(t, scenarios, func(possible []Fault) [][]Fault {
		random := randomOf(seed, possible)

		var plans [][]Fault
		for range count {
			plans = append(plans, []Fault{possible[random.IntN(len(possible))], possible[random.IntN(len(possible))]})
		}

		return plans
	})
}

// randomOf returns the source that selects from the possible faults of a scenario. Scenarios with different numbers of faults get
// different sources from one seed.
func randomOf(seed uint64, possible []Fault) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(len(possible))))
}

// Storm runs the scenario once and injects random faults. every is the average number of calls per fault. The seed selects the
// faults, but the order of concurrent calls also varies. The run must end as Expected says. Storm suits scenarios that are too
// long to run once for each fault.
func Storm[D any](t *testing.T, seed uint64, every int, scenario Scenario[D]) {
	t.Helper()

	t.Run(scenario.Name, func(t *testing.T) {
		faults := newFaults(nil)
		faults.every, faults.random = every, rand.New(rand.NewPCG(seed, uint64(every))) //nolint:gosec // chooses test data

		scenario.checkExpected(t, runOnce(t, scenario, faults))

		calls := 0
		for _, count := range faults.counts {
			calls += count
		}

		t.Logf("seed %d: %d faults in %d calls", seed, faults.injected, calls)

		if faults.injected == 0 {
			t.Error("no fault was injected: the scenario is too short")
		}
	})
}

// each runs every scenario without faults, and then once for each plan that the plan function derives from the possible faults.
func each[D any](t *testing.T, scenarios []Scenario[D], plan func(possible []Fault) [][]Fault) {
	t.Helper()

	var total tally

	for _, scenario := range scenarios {
		t.Run(scenario.Name, func(t *testing.T) {
			baseline, possible := rehearse(t, scenario)
			found := all(t, scenario, baseline, slices.DeleteFunc(plan(possible), scenario.isBeyondRepair))

			if found.tried >= representative {
				found.check(t)
			}

			total.tried += found.tried
			total.hits += found.hits
		})
	}

	total.check(t)
}

// tally counts the plans that ran, and how many of them injected a fault.
type tally struct{ tried, hits int }

// representative is the number of plans from which on a scenario is checked by itself. Of a few random plans, too many may miss by
// chance. The sum over all scenarios is always checked.
const representative = 20

// check fails the test if fewer than three quarters of the plans injected a fault, because the test would check too little.
func (c tally) check(t *testing.T) {
	t.Helper()

	if c.hits < c.tried*3/4 {
		t.Errorf("of %d plans only %d injected a fault: too many runs differ from the first one", c.tried, c.hits)
	}
}

// isBeyondRepair reports whether the plan freezes a replica during a call that only this replica can undo, and also kills a
// replica.
func (s Scenario[D]) isBeyondRepair(plan []Fault) bool {
	freezes := slices.ContainsFunc(plan, func(fault Fault) bool { return fault.Mode == Freezes && slices.Contains(s.UndoneByCaller, fault.Name) })
	kills := slices.ContainsFunc(plan, func(fault Fault) bool { return fault.Mode == DiesBefore || fault.Mode == DiesAfter })

	return freezes && kills
}

// attempts is the maximum number of runs with the same plan of faults.
const attempts = 3

// all runs the scenario with each plan. Concurrent events have no fixed order, so a run may make fewer calls than the first run
// and miss its fault. Such a run is repeated.
func all[D any](t *testing.T, scenario Scenario[D], baseline outcome, plans [][]Fault) tally {
	t.Helper()

	var found tally

	for _, plan := range plans {
		t.Run(name(plan), func(t *testing.T) {
			found.tried++

			for range attempts {
				faults := newFaults(plan)
				got := runOnce(t, scenario, faults)
				assertEqual(t, baseline, got)

				if faults.injected > 0 {
					found.hits++

					return
				}
			}
		})
	}

	return found
}

// rehearse runs the scenario without a fault. It returns the expected outcome and the possible faults.
func rehearse[D any](t *testing.T, scenario Scenario[D]) (outcome, []Fault) {
	t.Helper()

	faults := newFaults(nil)
	baseline := runOnce(t, scenario, faults)
	if t.Failed() {
		t.Fatal("the scenario fails even without a fault")
	}

	scenario.checkExpected(t, baseline)

	if len(faults.possible) == 0 {
		t.Fatal("the scenario has no fault point: does it call Run.InjectFaults?")
	}

	return baseline, faults.possible
}

// Covers fails the test unless every registered process has a scenario with its kind.
func Covers[D any](t *testing.T, processes []process.Process[D], scenarios ...Scenario[D]) {
	t.Helper()

	for _, registered := range processes {
		if !slices.ContainsFunc(scenarios, func(scenario Scenario[D]) bool { return scenario.Kind == registered.Kind }) {
			t.Errorf("the process %q has no scenario in the crash matrix: add one with Kind %q that accepts such an operation and returns "+
				"the state of the upstreams after it", registered.Kind, registered.Kind)
		}
	}
}
