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

// clusterState is the part of a cluster that customers change.
type clusterState struct {
	Kubernetes, Machine string
	Machines            int
	Asleep              bool
}

// kymaState is the optional part of a Kyma installation.
type kymaState struct {
	Version string
	// Retention is a setting of the component monitoring; empty without that component.
	Retention string
	Tracing   bool
}

// runtimeState is a runtime as its customer knows it.
type runtimeState struct {
	clusterState

	Administrator string
	// Kyma has no version if it is not installed.
	Kyma kymaState
}

// action is an operation that a customer orders.
type action struct {
	kind string
	// want is the state of the runtime after the operation.
	want runtimeState
	// lost drops the response, so that the customer repeats the request.
	lost bool
	// polls is the number of polls before the customer abandons a running operation; 0 waits for its end.
	polls int
}

// scenario is a runtime and the actions on it.
type scenario struct {
	name, provider string
	actions        []action

	// releasesServices reports whether the cluster still has its external service at the removal of the runtime, and can release it.
	releasesServices bool

	// Results: the accepted operations, and those of them that the customer abandoned.
	runtimeID           string
	accepted, abandoned []string
	released            atomic.Bool
	// cluster waits for the cluster and returns a client of it.
	cluster func(ctx context.Context) (dynamic.Interface, error)
	// stopAgent stops the agent and the service catalog in the cluster.
	stopAgent func()
}

// last returns the last action.
func (w *scenario) last() *action { return &w.actions[len(w.actions)-1] }

func (w *scenario) stays() bool { return !operation.Deprovisions(w.last().kind) }

// remove adds the removal of the runtime, after its last operation or during it.
func (w *scenario) remove(random *rand.Rand) {
	before := w.last()
	kind := operation.KindDeprovisionNoInstall

	if before.want.Kyma.Version != "" {
		kind = operation.KindDeprovision
		w.releasesServices = before.polls == 0 && !before.want.Asleep
	}

	w.actions = append(w.actions, action{kind: kind, want: before.want, lost: random.IntN(4) == 0})
}

// newScenarios draws scenarios until they contain each kind of operation.
func newScenarios(random *rand.Rand, prefix string, count int, kinds []string) []*scenario {
	for {
		covered := map[string]bool{}
		scenarios := make([]*scenario, 0, count)

		for i := range count {
			w := newScenario(random, fmt.Sprintf("%s-%02d", prefix, i))
			scenarios = append(scenarios, w)

			for _, m := range w.actions {
				covered[m.kind] = true
			}
		}

		if !slices.ContainsFunc(kinds, func(kind string) bool { return !covered[kind] }) {
			return scenarios
		}
	}
}

// newScenario draws a runtime, a valid sequence of changes, and possibly its removal.
func newScenario(random *rand.Rand, name string) *scenario {
	providers := []string{"aws", "azure", "gcp", "openstack"}
	w := &scenario{name: name, provider: providers[random.IntN(len(providers))]}

	now := runtimeState{clusterState: clusterState{Kubernetes: versions()[0], Machine: machines(w.provider)[0], Machines: 3}, Administrator: "first@example.com"}
	kind := operation.KindProvisionNoInstall

	if random.IntN(4) > 0 {
		kind, now.Kyma = operation.KindProvision, newKyma(random)
	}

	var previous *kymaState // the state that a rollback restores

	for changes := random.IntN(6); ; changes-- {
		w.actions = append(w.actions, action{kind: kind, want: now, lost: random.IntN(4) == 0})

		if changes == 0 {
			break
		}

		possible := changesOf(now, previous)
		kind = possible[random.IntN(len(possible))]

		switch kind {
		case operation.KindUpgrade:
			previous, now.Kyma = new(now.Kyma), newKyma(random)
		case operation.KindRollBack:
			previous, now.Kyma = nil, *previous
		case operation.KindUpgradeShoot:
			now = upgraded(random, now, w.provider)
		case operation.KindHibernate, operation.KindWakeUp:
			now.Asleep = !now.Asleep
		}
	}

	if random.IntN(3) > 0 {
		return w
	}

	if random.IntN(2) == 0 {
		w.last().polls = 1 + random.IntN(6)
	}

	w.remove(random)

	return w
}

// changesOf returns the kinds of operations that are possible in this state.
func changesOf(now runtimeState, previous *kymaState) []string {
	if now.Asleep {
		return []string{operation.KindUpgradeShoot, operation.KindWakeUp}
	}

	kinds := []string{operation.KindUpgradeShoot, operation.KindHibernate}
	if now.Kyma.Version != "" {
		kinds = append(kinds, operation.KindUpgrade, operation.KindReconnectRuntime)
	}

	if previous != nil {
		kinds = append(kinds, operation.KindRollBack)
	}

	return kinds
}

// upgraded draws the state after an upgrade.
func upgraded(random *rand.Rand, now runtimeState, provider string) runtimeState {
	all := versions()
	next := min(slices.Index(all, now.Kubernetes)+random.IntN(2), len(all)-1)

	now.Kubernetes, now.Machine = all[next], machines(provider)[random.IntN(2)]
	now.Machines, now.Administrator = 3+random.IntN(4), fmt.Sprintf("admin-%d@example.com", random.IntN(1000))

	return now
}

// newKyma draws a release, with or without optional components.
func newKyma(random *rand.Rand) kymaState {
	kyma := kymaState{Version: []string{"1.0.0", "1.1.0"}[random.IntN(2)]}
	if random.IntN(2) == 0 {
		kyma.Retention = fmt.Sprintf("%dd", 1+random.IntN(30))
		kyma.Tracing = kyma.Version == "1.1.0" && random.IntN(2) == 0
	}

	return kyma
}

// versions returns Kubernetes versions of the garden, each of which can be upgraded to the next.
func versions() []string { return []string{"1.34.5", "1.34.7", "1.35.2", "1.35.4", "1.36.1", "1.36.3"} }

// machines returns two machine types that the garden offers for a provider.
func machines(provider string) []string {
	return map[string][]string{
		"aws": {"m6i.large", "m6i.xlarge"}, "azure": {"Standard_D4s_v5", "Standard_D8s_v5"},
		"gcp": {"n2-standard-4", "n2-standard-8"}, "openstack": {"g_c4_m16", "g_c8_m32"},
	}[provider]
}
