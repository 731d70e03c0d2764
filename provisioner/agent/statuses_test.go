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

	in := func(state string, problems ...string) fixture {
		return fixture{agent: Agent{Connection: &Connection{ID: "id", State: state, Problems: problems}}}
	}

	for name, c := range map[string]struct {
		reason  string
		fixture fixture
		order   string
		want    Status
	}{
		"synchronized":   {"all is well", in(Synchronized), ordered, status(StatusConnected)},
		"connected":      {"it has a certificate", in(Connected), ordered, status(StatusConnected)},
		"unsynced":       {"it is connected, and its problem is reported", in(SynchronizationFailed, "Director said no"), ordered, status(StatusConnected, "Director said no")},
		"unapplied":      {"the same", in(ResourceApplicationFailed, "no room"), ordered, status(StatusConnected, "no room")},
		"unlabelled":     {"the same", in(MetadataUpdateFailed), ordered, status(StatusConnected)},
		"failed":         {"the agent reports why", in(ConnectionFailed, "bad token"), ordered, status(StatusDisconnected, "bad token")},
		"expired":        {"the agent reports why", in(ConnectionMaintenanceFailed, "a", "b"), ordered, status(StatusDisconnected, "a", "b")},
		"unknown":        {"a state of a later version is not interpreted", in("Pondering"), ordered, status(StatusPending, "the runtime agent is in an unknown state: Pondering")},
		"silent":         {"it has started", in(""), ordered, status(StatusPending)},
		"absent":         {"it has not started", fixture{}, ordered, status(StatusPending)},
		"without agent":  {"the order has no agent", in(Synchronized), `{}`, status(StatusPending)},
		"asleep":         {"it sleeps with its cluster", fixture{shoot: asleep, unread: away(failure.ComponentRuntime)}, ordered, status(StatusPending)},
		"falling asleep": {"hibernation has started", fixture{shoot: falling, unread: away(failure.ComponentRuntime)}, ordered, status(StatusPending)},
		"no cluster":     {"the cluster does not exist, or not yet", fixture{noShoot: failure.New(failure.NotFound, "no Shoot")}, ordered, status(StatusPending)},
		"cluster away":   {"its agent cannot be reached", fixture{unread: away(failure.ComponentRuntime)}, ordered, status(StatusDisconnected, "nobody answers")},
		"no kubeconfig":  {"an outage of Gardener says nothing about the agent", fixture{unread: away(failure.ComponentGardener)}, ordered, status(StatusPending, "nobody answers")},
		"Gardener away":  {"an outage of Gardener says nothing about the agent", fixture{noShoot: away(failure.ComponentGardener)}, ordered, status(StatusPending, "nobody answers")},
		"no order":       {"our own error must not hide the rest of the status", fixture{}, `{`, status(StatusPending, "the configuration of runtime runtime-1 cannot be read")},
	} {
		t.Run(name, func(t *testing.T) {
			w := &c.fixture
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

// crowd is a number of clusters that answer slowly.
type crowd struct {
	fixture

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
	c := &crowd{fixture: fixture{shoot: &gardencorev1beta1.Shoot{}}, asked: map[Place]int{}, takes: takes}

	return c, NewStatuses(c, c, clock.RealClock{})
}

func TestConcurrentRequestsShareAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, statuses := newCrowd(time.Second)
		at := Place{ShootName: "c-first", Namespace: "compass-system"}

		ask := func() {
			t.Helper()

			var asking sync.WaitGroup

			for range 100 {
				asking.Go(func() {
					if got := statuses.Status(t.Context(), row("c-first", ordered)); got.State != StatusConnected {
						t.Errorf("reported %v", got)
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
			t.Errorf("answers expire: the cluster was asked %d times, %d answers are cached", c.asked[at], len(statuses.answers))
		}
	})
}

func TestConcurrencyIsLimited(t *testing.T) {
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
			t.Errorf("rejected requests must not report a wrong status: %d clusters were asked at the same time, reported %v", c.peak, counts)
		}

		time.Sleep(fresh)

		if got := statuses.Status(t.Context(), row("c-last", ordered)); got.State != StatusConnected || len(statuses.answers) != 1 {
			t.Errorf("stale answers are dropped: %d answers are cached, reported %v", len(statuses.answers), got)
		}
	})
}

func TestStatusTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, statuses := newCrowd(time.Hour)

		var first sync.WaitGroup

		first.Go(func() {
			if got := statuses.Status(t.Context(), row("c-first", ordered)); got.State != StatusDisconnected {
				t.Errorf("the cluster has %s to answer, reported %v", answerTimeout, got)
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
