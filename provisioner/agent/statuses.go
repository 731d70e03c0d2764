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
	// answerTimeout is how long a cluster may take to tell its connection, turnTimeout how long it may take until it is asked.
	answerTimeout = 5 * time.Second
	turnTimeout   = 5 * time.Second
	// fresh is how long an answer is good: whoever asks within that time gets it again.
	fresh = 5 * time.Second
	// most is how many clusters are asked at the same time.
	most = 16
)

// Statuses tell how agents are connected. However many ask, each cluster is asked once at a time and not more often than every
// few seconds.
type Statuses struct {
	clusters Clusters
	shoots   shoot.Reader
	clock    clock.Clock
	asking   chan struct{}

	mu      sync.Mutex
	answers map[Place]*answer
}

// answer is that of a cluster: the status is there when done is closed.
type answer struct {
	done   chan struct{}
	until  time.Time
	status Status
}

// NewStatuses returns statuses that nobody has asked for yet.
func NewStatuses(clusters Clusters, shoots shoot.Reader, clock clock.Clock) *Statuses {
	return &Statuses{
		clusters: clusters, shoots: shoots, clock: clock, asking: make(chan struct{}, most), answers: map[Place]*answer{},
	}
}

// Status tells how the agent of a runtime with a cluster is connected. It always answers: what cannot be told stands among the errors.
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
		// Others wait for the answer too, so it does not end with the first one's request.
		s.ask(context.WithoutCancel(ctx), at, asked)
	}

	select {
	case <-asked.done:
		return asked.status
	case <-ctx.Done():
		return pending("the cluster has not answered yet")
	}
}

// answer returns the answer to wait for, and whether the caller has to get it.
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

// good reports whether the answer is still to come, or fresh.
func (s *Statuses) good(each *answer) bool {
	return each.until.IsZero() || s.clock.Now().Before(each.until)
}

func (s *Statuses) ask(ctx context.Context, at Place, into *answer) {
	status := s.told(ctx, at)

	s.mu.Lock()
	defer s.mu.Unlock()

	into.status, into.until = status, s.clock.Now().Add(fresh)
	close(into.done)
}

// told asks the cluster, if it is awake.
func (s *Statuses) told(ctx context.Context, at Place) Status {
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-s.clock.After(turnTimeout):
		return pending("too many clusters are asked at the same time: ask again")
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

	// Of an agent whose cluster does not answer nobody hears. When it is Gardener that does not answer, that says nothing of the agent.
	known := failure.Of(err)
	if known.Component == failure.ComponentRuntime {
		return Status{State: StatusDisconnected, Problems: []string{known.Text}}
	}

	return pending(known.Text)
}
