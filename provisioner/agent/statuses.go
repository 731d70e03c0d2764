package agent

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

const (
	// answerTimeout bounds a query to a cluster, turnTimeout the wait until it starts.
	answerTimeout = 5 * time.Second
	turnTimeout   = 5 * time.Second
	// fresh is how long an answer is cached.
	fresh = 5 * time.Second
	// most is the number of clusters that are queried at the same time.
	most = 16
)

// Statuses returns the connections of agents. However many callers there are, each cluster is queried once at a time and every few seconds
// at most.
type Statuses struct {
	clusters Clusters
	shoots   shoot.Reader
	clock    clock.Clock
	asking   chan struct{}

	mu      sync.Mutex
	answers map[Place]*answer
}

// answer is the answer of a cluster: status is set when done is closed.
type answer struct {
	done   chan struct{}
	until  time.Time
	status Status
}

// NewStatuses returns Statuses with an empty cache.
func NewStatuses(clusters Clusters, shoots shoot.Reader, clock clock.Clock) *Statuses {
	return &Statuses{
		clusters: clusters, shoots: shoots, clock: clock, asking: make(chan struct{}, most), answers: map[Place]*answer{},
	}
}

// Status returns the connection of the agent of a runtime. It never fails: reasons why the state is unknown are among the errors.
func (s *Statuses) Status(ctx context.Context, runtime runtimes.Runtime) Status {
	order, err := operation.OrderOf(runtime)
	if err != nil {
		return pending(failure.Of(err).Text)
	}

	at, found := PlaceOf(runtime.ShootName, order)
	if !found {
		return pending()
	}

	asked, first := s.answer(at)
	if first {
		// Others wait for the answer too, so the end of the first request must not cancel it.
		s.ask(context.WithoutCancel(ctx), at, asked)
	}

	select {
	case <-asked.done:
		return asked.status
	case <-ctx.Done():
		return pending("the cluster has not answered yet")
	}
}

// answer returns the answer to wait for, and whether the caller must fetch it.
func (s *Statuses) answer(at Place) (wanted *answer, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if present, asked := s.answers[at]; asked && s.good(present) {
		return present, false
	}

	for place, each := range s.answers {
		if !s.good(each) {
			delete(s.answers, place)
		}
	}

	s.answers[at] = &answer{done: make(chan struct{})}

	return s.answers[at], true
}

// good reports whether the answer is pending or fresh.
func (s *Statuses) good(each *answer) bool {
	return each.until.IsZero() || s.clock.Now().Before(each.until)
}

func (s *Statuses) ask(ctx context.Context, at Place, into *answer) {
	status := s.query(ctx, at)

	s.mu.Lock()
	defer s.mu.Unlock()

	into.status, into.until = status, s.clock.Now().Add(fresh)
	close(into.done)
}

// query asks Gardener for the Shoot and the cluster for its agent, unless the cluster hibernates.
func (s *Statuses) query(ctx context.Context, at Place) Status {
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-s.clock.After(turnTimeout):
		return pending("too many clusters are queried at the same time: retry")
	}

	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()

	existing, err := s.shoots.Get(ctx, at.ShootName)

	switch {
	case failure.Is(err, failure.NotFound):
		return pending()
	case err != nil:
		return pending(failure.Of(err).Text)
	case shoot.Asleep(existing):
		return pending()
	}

	found, err := s.clusters.Agent(ctx, at)
	if err == nil {
		return found.Connection.status()
	}

	// A cluster that does not answer has a disconnected agent. If Gardener does not answer, the state of the agent is unknown.
	known := failure.Of(err)
	if known.Component == failure.ComponentRuntime {
		return Status{State: StatusDisconnected, Problems: []string{known.Text}}
	}

	return pending(known.Text)
}
