package agent

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

const (
	// answerTimeout limits one query to a cluster. turnTimeout limits the wait for a free slot before the query.
	answerTimeout = 5 * time.Second
	turnTimeout   = 5 * time.Second
	// fresh is the lifetime of a cached status.
	fresh = 5 * time.Second
	// maxQueries is the maximum number of concurrent queries. Each query needs a connection and a kubeconfig.
	maxQueries = 16
)

// Statuses returns the states of agents' connections for the API. Each query needs a new kubeconfig. Statuses therefore caches
// the states, and queries a cluster at most once per cache lifetime, regardless of the number of requests. The methods are safe
// for concurrent use. Each replica has its own cache.
type Statuses struct {
	clusters Clusters
	shoots   shoot.Reader
	clock    clock.Clock
	// slots limits the number of concurrent queries to its capacity.
	slots chan struct{}
	// queries makes concurrent requests for the same Place share one query.
	queries singleflight.Group
	// results caches the Status of each Place.
	results *cache.Expiring
}

// NewStatuses returns Statuses with an empty cache.
func NewStatuses(clusters Clusters, shoots shoot.Reader, clock clock.Clock) *Statuses {
	return &Statuses{
		clusters: clusters, shoots: shoots, clock: clock, slots: make(chan struct{}, maxQueries), results: cache.NewExpiringWithClock(clock),
	}
}

// Status returns the status of the runtime's agent, at the latest when the context ends. It never fails: if the state cannot be
// determined, it returns StatusPending with the reason in Problems. A runtime without an agent, and a Shoot that is missing or
// hibernated, have StatusPending without problems.
func (s *Statuses) Status(ctx context.Context, runtime runtimes.Runtime) Status {
	order, err := operation.OrderOf(runtime)
	if err != nil {
		return pending(failure.Of(err).ForOperators())
	}

	at, found := PlaceOf(runtime.ShootName, order)
	if !found {
		return pending()
	}

	// Other requests may be waiting for the same query, so the end of this request must not cancel it.
	shared := context.WithoutCancel(ctx)
	answer := s.queries.DoChan(at.ShootName+"/"+at.Namespace, func() (any, error) { return s.cached(shared, at), nil })

	select {
	case result := <-answer:
		status, _ := result.Val.(Status)

		return status
	case <-ctx.Done():
		return pending("the cluster has not responded yet")
	}
}

// cached returns the cached status, or queries the cluster. It must run inside the singleflight call: otherwise a request that
// finds the cache empty just before another query ends would start a second query.
func (s *Statuses) cached(ctx context.Context, at Place) Status {
	if present, ok := s.results.Get(at); ok {
		status, _ := present.(Status)

		return status
	}

	status := s.query(ctx, at)
	s.results.Set(at, status, fresh)

	return status
}

// query reads the Shoot from Gardener and the agent from its cluster. It does not call the API server of a hibernated cluster.
func (s *Statuses) query(ctx context.Context, at Place) Status {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-s.clock.After(turnTimeout):
		return pending("too many clusters are queried at the same time: retry")
	}

	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()

	existing, err := s.shoots.Get(ctx, at.ShootName)

	switch {
	case failure.Is(err, failure.NotFound):
		// Gardener has not created the Shoot yet, or has already deleted it. Neither is a problem of the agent.
		return pending()
	case err != nil:
		return pending(failure.Of(err).ForOperators())
	case shoot.Asleep(existing):
		return pending()
	}

	found, err := s.clusters.Agent(ctx, at)
	if err == nil {
		return found.Connection.status()
	}

	// If the cluster does not respond, its agent is disconnected. If Gardener does not respond, the agent's state is unknown.
	problem := failure.Of(err)
	if problem.Component == failure.ComponentRuntime {
		return Status{State: StatusDisconnected, Problems: []string{problem.ForOperators()}}
	}

	return pending(problem.ForOperators())
}
