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
	hibernated, hibernating := &gardencorev1beta1.Shoot{}, &gardencorev1beta1.Shoot{}
	hibernated.Status.IsHibernated = true
	hibernating.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}

	in := func(state string, problems ...string) fixture {
		return fixture{agent: Agent{Connection: &Connection{ID: "id", State: state, Problems: problems}}}
	}

	for name, c := range map[string]struct {
		reason  string
		fixture fixture
		order   string
		want    Status
	}{
		"synchronized":  {"the agent has synchronized", in(Synchronized), ordered, status(StatusConnected)},
		"connected":     {"the agent has a certificate", in(Connected), ordered, status(StatusConnected)},
		"unsynced":      {"the agent is connected, and its problem is reported", in(SynchronizationFailed, "Director said no"), ordered, status(StatusConnected, "Director said no")},
		"unapplied":     {"the connection persists, and its problem is reported", in(ResourceApplicationFailed, "no room"), ordered, status(StatusConnected, "no room")},
		"unlabelled":    {"the connection persists, and its problem is reported", in(MetadataUpdateFailed), ordered, status(StatusConnected)},
		"failed":        {"the agent reports why", in(ConnectionFailed, "bad token"), ordered, status(StatusDisconnected, "bad token")},
		"expired":       {"the agent reports why", in(ConnectionMaintenanceFailed, "a", "b"), ordered, status(StatusDisconnected, "a", "b")},
		"unknown":       {"a state of a later version is not interpreted", in("FutureState"), ordered, status(StatusPending, "the runtime agent is in an unknown state: FutureState")},
		"silent":        {"the agent has not reported a state yet", in(""), ordered, status(StatusPending)},
		"absent":        {"the agent has not started", fixture{}, ordered, status(StatusPending)},
		"without agent": {"the order has no agent", in(Synchronized), `{}`, status(StatusPending)},
		"hibernated":    {"the cluster is hibernated", fixture{shoot: hibernated, agentErr: unavailable(failure.ComponentRuntime)}, ordered, status(StatusPending)},
		"hibernating":   {"hibernation has started", fixture{shoot: hibernating, agentErr: unavailable(failure.ComponentRuntime)}, ordered, status(StatusPending)},
		"no cluster":    {"the cluster does not exist yet, or is gone", fixture{shootErr: failure.New(failure.NotFound, "no Shoot")}, ordered, status(StatusPending)},
		"cluster away":  {"its agent cannot be reached", fixture{agentErr: unavailable(failure.ComponentRuntime)}, ordered, status(StatusDisconnected, "the server does not respond")},
		"no kubeconfig": {"an outage of Gardener does not affect the agent's state", fixture{agentErr: unavailable(failure.ComponentGardener)}, ordered, status(StatusPending, "the server does not respond")},
		"Gardener away": {"an outage of Gardener does not affect the agent's state", fixture{shootErr: unavailable(failure.ComponentGardener)}, ordered, status(StatusPending, "the server does not respond")},
		"no order":      {"our own error must not hide the rest of the status", fixture{}, `{`, status(StatusPending, "the configuration of runtime runtime-1 cannot be read")},
	} {
		t.Run(name, func(t *testing.T) {
			f := &c.fixture
			if f.shoot == nil && f.shootErr == nil {
				f.shoot = &gardencorev1beta1.Shoot{}
			}

			got := NewStatuses(f, f, clock.RealClock{}).Status(t.Context(), row("c-first", c.order))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s, -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

// slowClusters fakes any number of clusters with slow API servers.
type slowClusters struct {
	fixture

	mu        sync.Mutex
	asked     map[Place]int
	now, peak int
	takes     time.Duration
}

func (c *slowClusters) Agent(ctx context.Context, at Place) (Agent, error) {
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
		return Agent{}, unavailable(failure.ComponentRuntime)
	}
}

func newSlowClusters(takes time.Duration) (*slowClusters, *Statuses) {
	c := &slowClusters{fixture: fixture{shoot: &gardencorev1beta1.Shoot{}}, asked: map[Place]int{}, takes: takes}

	return c, NewStatuses(c, c, clock.RealClock{})
}

func TestConcurrentRequestsShareAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, statuses := newSlowClusters(time.Second)
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
			t.Errorf("the cached status was not used: the cluster was queried %d times", c.asked[at])
		}

		time.Sleep(fresh)
		ask()

		if c.asked[at] != 2 || statuses.results.Len() != 1 {
			t.Errorf("after the expiry: the cluster was queried %d times, %d statuses are cached", c.asked[at], statuses.results.Len())
		}
	})
}

func TestConcurrencyIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, statuses := newSlowClusters(time.Second)

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

		if c.peak != maxQueries || counts[StatusDisconnected] > 0 || counts[StatusPending] == 0 || counts[StatusConnected] < 4*maxQueries {
			t.Errorf("rejected requests must not report a wrong status: %d clusters were queried concurrently, reported %v", c.peak, counts)
		}

		time.Sleep(fresh)

		if got := statuses.Status(t.Context(), row("c-last", ordered)); got.State != StatusConnected || statuses.results.Len() != 1 {
			t.Errorf("expired statuses must be removed: %d are cached, reported %v", statuses.results.Len(), got)
		}
	})
}

func TestStatusTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, statuses := newSlowClusters(time.Hour)

		var first sync.WaitGroup

		first.Go(func() {
			if got := statuses.Status(t.Context(), row("c-first", ordered)); got.State != StatusDisconnected {
				t.Errorf("the cluster has %s to respond, reported %v", answerTimeout, got)
			}
		})
		synctest.Wait()

		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		if diff := cmp.Diff(status(StatusPending, "the cluster has not responded yet"), statuses.Status(impatient, row("c-first", ordered))); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}

		first.Wait()
	})
}
