package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

func status(state State, problems ...string) Status { return Status{State: state, Problems: problems} }

func row(shootName, configuration string) runtimes.Runtime {
	return runtimes.Runtime{ID: runtimeID, ShootName: shootName, Configuration: json.RawMessage(configuration)}
}

func TestStatus(t *testing.T) {
	asleep, falling := &gardencorev1beta1.Shoot{}, &gardencorev1beta1.Shoot{}
	asleep.Status.IsHibernated = true
	falling.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}

	in := func(state string, problems ...string) world {
		return world{agent: Agent{Connection: &Connection{ID: "id", State: state, Problems: problems}}}
	}

	for name, c := range map[string]struct {
		reason string
		world  world
		order  string
		want   Status
	}{
		"synchronized":  {"all is well", in(Synchronized), ordered, status(StatusConnected)},
		"connected":     {"it has a certificate", in(Connected), ordered, status(StatusConnected)},
		"unsynced":      {"connected, and what it lacks is told", in(SynchronizationFailed, "Director said no"), ordered, status(StatusConnected, "Director said no")},
		"unapplied":     {"the same", in(ResourceApplicationFailed, "no room"), ordered, status(StatusConnected, "no room")},
		"unlabelled":    {"the same", in(MetadataUpdateFailed), ordered, status(StatusConnected)},
		"failed":        {"its words say why", in(ConnectionFailed, "bad token"), ordered, status(StatusDisconnected, "bad token")},
		"expired":       {"its words say why", in(ConnectionMaintenanceFailed, "a", "b"), ordered, status(StatusDisconnected, "a", "b")},
		"unknown":       {"what is not known is not guessed", in("Pondering"), ordered, status(StatusPending, "the runtime agent is in an unknown state: Pondering")},
		"silent":        {"it has begun", in(""), ordered, status(StatusPending)},
		"absent":        {"it has not begun", world{}, ordered, status(StatusPending)},
		"without agent": {"nobody will connect", in(Synchronized), `{}`, status(StatusPending)},
		"asleep":        {"it sleeps with its cluster", world{shoot: asleep, unread: away(failure.ComponentRuntime)}, ordered, status(StatusPending)},
		"falling":       {"it will sleep in a moment", world{shoot: falling, unread: away(failure.ComponentRuntime)}, ordered, status(StatusPending)},
		"no cluster":    {"it is gone or not there yet", world{noShoot: failure.New(failure.NotFound, "no Shoot")}, ordered, status(StatusPending)},
		"cluster away":  {"of its agent nobody hears", world{unread: away(failure.ComponentRuntime)}, ordered, status(StatusDisconnected, "nobody answers")},
		"no kubeconfig": {"that says nothing of the agent", world{unread: away(failure.ComponentGardener)}, ordered, status(StatusPending, "nobody answers")},
		"Gardener away": {"that says nothing of the agent", world{noShoot: away(failure.ComponentGardener)}, ordered, status(StatusPending, "nobody answers")},
		"no order":      {"a fault of ours hides nothing else of the runtime", world{}, `{`, status(StatusPending, "the configuration of runtime runtime-1 cannot be read")},
	} {
		t.Run(name, func(t *testing.T) {
			w := &c.world
			if w.shoot == nil && w.noShoot == nil {
				w.shoot = &gardencorev1beta1.Shoot{}
			}

			got := NewStatuses(w, w, clock.RealClock{}).Status(t.Context(), row("c-first", c.order))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s, -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

// crowd are clusters that answer slowly.
type crowd struct {
	world

	mu        sync.Mutex
	asked     map[Place]int
	now, peak int
	takes     time.Duration
}

func (c *crowd) Agent(ctx context.Context, at Place) (Agent, error) {
	c.mu.Lock()
	c.asked[at]++
	c.now++
	c.peak = max(c.peak, c.now)
	c.mu.Unlock()

	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()

		c.now--
	}()

	select {
	case <-time.After(c.takes):
		return Agent{Connection: &Connection{State: Synchronized}}, nil
	case <-ctx.Done():
		return Agent{}, away(failure.ComponentRuntime)
	}
}

func newCrowd(takes time.Duration) (*crowd, *Statuses) {
	c := &crowd{world: world{shoot: &gardencorev1beta1.Shoot{}}, asked: map[Place]int{}, takes: takes}

	return c, NewStatuses(c, c, clock.RealClock{})
}

func TestManyAskOneCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, statuses := newCrowd(time.Second)
		at := Place{ShootName: "c-first", Namespace: "compass-system"}

		ask := func() {
			t.Helper()

			var asking sync.WaitGroup

			for range 100 {
				asking.Go(func() {
					if got := statuses.Status(t.Context(), row("c-first", ordered)); got.State != StatusConnected {
						t.Errorf("told %v", got)
					}
				})
			}

			asking.Wait()
		}

		ask()
		ask()

		if c.asked[at] != 1 {
			t.Errorf("the cluster was asked %d times in a moment", c.asked[at])
		}

		time.Sleep(fresh)
		ask()

		if c.asked[at] != 2 || len(statuses.answers) != 1 {
			t.Errorf("an answer ages: the cluster was asked %d times, %d answers are kept", c.asked[at], len(statuses.answers))
		}
	})
}

func TestManyClustersAreAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, statuses := newCrowd(time.Second)

		var asking sync.WaitGroup

		states := make([]State, 200)

		for i := range states {
			asking.Go(func() { states[i] = statuses.Status(t.Context(), row(fmt.Sprintf("c-%d", i), ordered)).State })
		}

		asking.Wait()

		counts := map[State]int{}
		for _, state := range states {
			counts[state]++
		}

		if c.peak != most || counts[StatusDisconnected] > 0 || counts[StatusPending] == 0 || counts[StatusConnected] < 4*most {
			t.Errorf("some have to ask again, but of none is told what is not true: %d were asked at the same time, told %v", c.peak, counts)
		}

		time.Sleep(fresh)

		if got := statuses.Status(t.Context(), row("c-last", ordered)); got.State != StatusConnected || len(statuses.answers) != 1 {
			t.Errorf("what is not fresh is forgotten: %d answers are kept, told %v", len(statuses.answers), got)
		}
	})
}

func TestNobodyWaitsLongerThanItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, statuses := newCrowd(time.Hour)

		var first sync.WaitGroup

		first.Go(func() {
			if got := statuses.Status(t.Context(), row("c-first", ordered)); got.State != StatusDisconnected {
				t.Errorf("the cluster has %s to answer, told %v", answerTimeout, got)
			}
		})
		synctest.Wait()

		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		if diff := cmp.Diff(status(StatusPending, "the cluster has not answered yet"), statuses.Status(impatient, row("c-first", ordered))); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}

		first.Wait()
	})
}
