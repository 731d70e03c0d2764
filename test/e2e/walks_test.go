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

// clusterState is what of a cluster customers change.
type clusterState struct {
	Kubernetes, Machine string
	Machines            int
	Asleep              bool
}

// kymaState is what of Kyma they order beside what always goes with it.
type kymaState struct {
	Version string
	// Retention is a value of the component monitoring, empty without it.
	Retention string
	Tracing   bool
}

// runtimeState is what a customer knows of a runtime.
type runtimeState struct {
	clusterState

	Administrator string
	// Kyma has no version where there is none.
	Kyma kymaState
}

// move is an operation that a customer orders.
type move struct {
	kind string
	// leaves is what the runtime is when the operation has succeeded.
	leaves runtimeState
	// lost is whether the customer does not get the answer, and asks again.
	lost bool
	// polls is after how many looks the customer goes on, although the operation runs; 0 for not before its end.
	polls int
}

// walk is a runtime from its order on.
type walk struct {
	name, provider string
	moves          []move

	// givesBack is whether the service that the cluster has from outside is there, and can be given back, when the runtime is removed.
	givesBack bool

	// What came of it: the operations that were accepted, and those of them that the customer did not wait for.
	runtimeID           string
	accepted, abandoned []string
	gaveBack            atomic.Bool
	// cluster is the inside of it, once it is there.
	cluster func(ctx context.Context) (dynamic.Interface, error)
	// dismiss has those stop working who work in the cluster.
	dismiss func()
}

// last is the move at the end of the walk.
func (w *walk) last() *move { return &w.moves[len(w.moves)-1] }

func (w *walk) stays() bool { return !operation.Deprovisions(w.last().kind) }

// remove adds the removal of the runtime, after its last operation or while that runs.
func (w *walk) remove(random *rand.Rand) {
	before := w.last()
	kind := operation.KindDeprovisionNoInstall

	if before.leaves.Kyma.Version != "" {
		kind = operation.KindDeprovision
		w.givesBack = before.polls == 0 && !before.leaves.Asleep
	}

	w.moves = append(w.moves, move{kind: kind, leaves: before.leaves, lost: random.IntN(4) == 0})
}

// newWalks draws walks that play each of the kinds.
func newWalks(random *rand.Rand, prefix string, count int, kinds []string) []*walk {
	for {
		played := map[string]bool{}
		walks := make([]*walk, 0, count)

		for i := range count {
			w := newWalk(random, fmt.Sprintf("%s-%02d", prefix, i))
			walks = append(walks, w)

			for _, m := range w.moves {
				played[m.kind] = true
			}
		}

		if !slices.ContainsFunc(kinds, func(kind string) bool { return !played[kind] }) {
			return walks
		}
	}
}

// newWalk draws a runtime, some changes of it that are allowed one after the other, and maybe its removal.
func newWalk(random *rand.Rand, name string) *walk {
	providers := []string{"aws", "azure", "gcp", "openstack"}
	w := &walk{name: name, provider: providers[random.IntN(len(providers))]}

	now := runtimeState{clusterState: clusterState{Kubernetes: versions()[0], Machine: machines(w.provider)[0], Machines: 3}, Administrator: "first@example.com"}
	kind := operation.KindProvisionNoInstall

	if random.IntN(4) > 0 {
		kind, now.Kyma = operation.KindProvision, newKyma(random)
	}

	var former *kymaState // what a roll back puts back

	for changes := random.IntN(6); ; changes-- {
		w.moves = append(w.moves, move{kind: kind, leaves: now, lost: random.IntN(4) == 0})

		if changes == 0 {
			break
		}

		possible := changesOf(now, former)
		kind = possible[random.IntN(len(possible))]

		switch kind {
		case operation.KindUpgrade:
			former, now.Kyma = new(now.Kyma), newKyma(random)
		case operation.KindRollBack:
			former, now.Kyma = nil, *former
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

// changesOf are the kinds of operations that change a runtime as it is now.
func changesOf(now runtimeState, former *kymaState) []string {
	if now.Asleep {
		return []string{operation.KindUpgradeShoot, operation.KindWakeUp}
	}

	kinds := []string{operation.KindUpgradeShoot, operation.KindHibernate}
	if now.Kyma.Version != "" {
		kinds = append(kinds, operation.KindUpgrade, operation.KindReconnectRuntime)
	}

	if former != nil {
		kinds = append(kinds, operation.KindRollBack)
	}

	return kinds
}

// upgraded draws what an upgrade makes of a runtime.
func upgraded(random *rand.Rand, now runtimeState, provider string) runtimeState {
	all := versions()
	next := min(slices.Index(all, now.Kubernetes)+random.IntN(2), len(all)-1)

	now.Kubernetes, now.Machine = all[next], machines(provider)[random.IntN(2)]
	now.Machines, now.Administrator = 3+random.IntN(4), fmt.Sprintf("admin-%d@example.com", random.IntN(1000))

	return now
}

// newKyma draws a release, with optional components or without.
func newKyma(random *rand.Rand) kymaState {
	kyma := kymaState{Version: []string{"1.0.0", "1.1.0"}[random.IntN(2)]}
	if random.IntN(2) == 0 {
		kyma.Retention = fmt.Sprintf("%dd", 1+random.IntN(30))
		kyma.Tracing = kyma.Version == "1.1.0" && random.IntN(2) == 0
	}

	return kyma
}

// versions are some of Kubernetes that the garden offers, each of which can be upgraded to the next.
func versions() []string { return []string{"1.34.5", "1.34.7", "1.35.2", "1.35.4", "1.36.1", "1.36.3"} }

// machines are two that the garden offers for a provider.
func machines(provider string) []string {
	return map[string][]string{
		"aws": {"m6i.large", "m6i.xlarge"}, "azure": {"Standard_D4s_v5", "Standard_D8s_v5"},
		"gcp": {"n2-standard-4", "n2-standard-8"}, "openstack": {"g_c4_m16", "g_c8_m32"},
	}[provider]
}
