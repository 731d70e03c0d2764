//go:build garden

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"k8s.io/client-go/dynamic"

	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// clusterState has the properties of a cluster that customers can change.
type clusterState struct {
	Kubernetes, Machine string
	Machines            int
	Hibernated          bool
}

// kymaState has the properties of a Kyma installation that customers can change. The zero value means that the runtime has no
// Kyma.
type kymaState struct {
	Version string
	// Retention is a setting of the component monitoring. It is empty without this component.
	Retention string
	Tracing   bool
}

// runtimeState is the state of a runtime that its customer expects.
type runtimeState struct {
	clusterState

	Administrator string
	// Kyma has an empty version if Kyma is not installed.
	Kyma kymaState
}

// action is an operation of a scenario.
type action struct {
	kind string
	// want is the state of the runtime after the operation.
	want runtimeState
	// losesResponse makes the test drop the response, so that the customer repeats the request.
	losesResponse bool
	// polls is the number of polls after which the customer abandons an operation in progress. With 0 the customer waits until
	// the operation has ended.
	polls int
}

// scenario is a sequence of actions on one runtime.
type scenario struct {
	name, provider string
	actions        []action

	// releasesServices reports whether the runtime is removed while the external service exists, so that the service catalog
	// must release the service.
	releasesServices bool

	// The following fields are results: the ID of the runtime, the IDs of the accepted operations, the IDs of the operations
	// that the customer abandoned, and whether the service catalog has released the external service.
	runtimeID           string
	accepted, abandoned []string
	released            atomic.Bool
	// cluster waits until the cluster exists and returns its client.
	cluster func(ctx context.Context) (dynamic.Interface, error)
	// stopAgent stops the agent and the service catalog in the cluster.
	stopAgent func()
}

func (s *scenario) last() *action { return &s.actions[len(s.actions)-1] }

func (s *scenario) keepsRuntime() bool { return !operation.Deprovisions(s.last().kind) }

// remove adds an action that removes the runtime. If the customer abandons the last action, the removal starts during the
// operation of that action.
func (s *scenario) remove(random *rand.Rand) {
	before := s.last()
	kind := operation.KindDeprovisionNoInstall

	if before.want.Kyma.Version != "" {
		kind = operation.KindDeprovision
		s.releasesServices = before.polls == 0 && !before.want.Hibernated
	}

	s.actions = append(s.actions, action{kind: kind, want: before.want, losesResponse: random.IntN(4) == 0})
}

// newScenarios draws count scenarios. It draws again until every kind of operation in kinds occurs.
func newScenarios(random *rand.Rand, prefix string, count int, kinds []string) []*scenario {
	for {
		covered := map[string]bool{}
		scenarios := make([]*scenario, 0, count)

		for i := range count {
			s := newScenario(random, fmt.Sprintf("%s-%02d", prefix, i))
			scenarios = append(scenarios, s)

			for _, a := range s.actions {
				covered[a.kind] = true
			}
		}

		if !slices.ContainsFunc(kinds, func(kind string) bool { return !covered[kind] }) {
			return scenarios
		}
	}
}

// newScenario draws a runtime, a valid sequence of changes, and possibly the removal of the runtime.
func newScenario(random *rand.Rand, name string) *scenario {
	providers := []string{"aws", "azure", "gcp", "openstack"}
	s := &scenario{name: name, provider: providers[random.IntN(len(providers))]}

	state := runtimeState{clusterState: clusterState{Kubernetes: versions()[0], Machine: machines(s.provider)[0], Machines: 3}, Administrator: "first@example.com"}
	kind := operation.KindProvisionNoInstall

	if random.IntN(4) > 0 {
		kind, state.Kyma = operation.KindProvision, drawKyma(random)
	}

	var previous *kymaState // the state that a rollback restores

	for changes := random.IntN(6); ; changes-- {
		s.actions = append(s.actions, action{kind: kind, want: state, losesResponse: random.IntN(4) == 0})

		if changes == 0 {
			break
		}

		possible := possibleKinds(state, previous)
		kind = possible[random.IntN(len(possible))]

		switch kind {
		case operation.KindUpgrade:
			previous, state.Kyma = new(state.Kyma), drawKyma(random)
		case operation.KindUpgradeRuntime:
			previous, state.Kyma = new(state.Kyma), drawKyma(random)
			state.Kubernetes = drawKubernetes(random, state.Kubernetes)
		case operation.KindRollBack:
			previous, state.Kyma = nil, *previous
		case operation.KindUpgradeShoot:
			state = drawUpgrade(random, state, s.provider)
		case operation.KindHibernate, operation.KindWakeUp:
			state.Hibernated = !state.Hibernated
		}
	}

	if random.IntN(3) > 0 {
		return s
	}

	if random.IntN(2) == 0 {
		s.last().polls = 1 + random.IntN(6)
	}

	s.remove(random)

	return s
}

// possibleKinds returns the kinds of operations that the Provisioner accepts for a runtime in this state. previous is nil if
// there is no upgrade of Kyma to roll back.
func possibleKinds(state runtimeState, previous *kymaState) []string {
	if state.Hibernated {
		return []string{operation.KindUpgradeShoot, operation.KindWakeUp}
	}

	kinds := []string{operation.KindUpgradeShoot, operation.KindHibernate}
	if state.Kyma.Version != "" {
		kinds = append(kinds, operation.KindUpgrade, operation.KindUpgradeRuntime, operation.KindReconnectRuntime)
	}

	if previous != nil {
		kinds = append(kinds, operation.KindRollBack)
	}

	return kinds
}

// drawUpgrade draws the state after an upgrade of the Shoot.
func drawUpgrade(random *rand.Rand, state runtimeState, provider string) runtimeState {
	state.Kubernetes, state.Machine = drawKubernetes(random, state.Kubernetes), machines(provider)[random.IntN(2)]
	state.Machines, state.Administrator = 3+random.IntN(4), fmt.Sprintf("admin-%d@example.com", random.IntN(1000))

	return state
}

// drawKubernetes draws the present version or the next one.
func drawKubernetes(random *rand.Rand, present string) string {
	all := versions()

	return all[min(slices.Index(all, present)+random.IntN(2), len(all)-1)]
}

// drawKyma draws a Kyma release, with or without optional components.
func drawKyma(random *rand.Rand) kymaState {
	kyma := kymaState{Version: []string{"1.0.0", "1.1.0"}[random.IntN(2)]}
	if random.IntN(2) == 0 {
		kyma.Retention = fmt.Sprintf("%dd", 1+random.IntN(30))
		kyma.Tracing = kyma.Version == "1.1.0" && random.IntN(2) == 0
	}

	return kyma
}

// versions returns Kubernetes versions that the garden offers, in ascending order. A cluster can be upgraded from each version
// to the next.
func versions() []string { return []string{"1.34.5", "1.34.7", "1.35.2", "1.35.4", "1.36.1", "1.36.3"} }

// machines returns two machine types that the garden offers for the provider.
func machines(provider string) []string {
	return map[string][]string{
		"aws": {"m6i.large", "m6i.xlarge"}, "azure": {"Standard_D4s_v5", "Standard_D8s_v5"},
		"gcp": {"n2-standard-4", "n2-standard-8"}, "openstack": {"g_c4_m16", "g_c8_m32"},
	}[provider]
}
