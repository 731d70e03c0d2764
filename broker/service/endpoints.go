package service

import (
	"context"
	"time"

	"github.com/hashicorp/golang-lru/v2/expirable"
	"golang.org/x/time/rate"

	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/runtimeaccess"
)

const (
	// knownEndpoints is how many addresses are remembered, knownFor how long.
	knownEndpoints = 10_000
	knownFor       = 10 * time.Minute
	// lookUps bounds how many addresses are looked up in a second: requests without credentials ask for them.
	lookUps = 5
)

// endpoints remembers where the API servers of runtimes are. Looking one up costs the Provisioner a kubeconfig.
type endpoints struct {
	access runtimeaccess.Access
	known  *expirable.LRU[string, operator.Endpoint]
	limit  *rate.Limiter
}

func newEndpoints(access runtimeaccess.Access) endpoints {
	return endpoints{
		access: access,
		known:  expirable.NewLRU[string, operator.Endpoint](knownEndpoints, nil, knownFor),
		limit:  rate.NewLimiter(lookUps, lookUps),
	}
}

// Endpoint implements operator.Endpoints.
func (e endpoints) Endpoint(ctx context.Context, instance environment.Instance) (operator.Endpoint, error) {
	if known, ok := e.known.Get(instance.RuntimeID); ok {
		return known, nil
	}

	if !e.limit.Allow() {
		return operator.Endpoint{}, failure.New(failure.Transient, "too many kubeconfigs are asked for: try again in a second")
	}

	server, authority, err := e.access.Endpoint(ctx, instance)
	if err != nil {
		return operator.Endpoint{}, err
	}

	found := operator.Endpoint{Server: server, CA: authority}
	e.known.Add(instance.RuntimeID, found)

	return found, nil
}
