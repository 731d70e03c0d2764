package operator

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/secret"
)

const (
	// endpointAge limits the age of a cached endpoint, because clusters rotate their certificates.
	endpointAge = 10 * time.Minute
	// maxEndpoints limits the size of the cache, which drops the endpoint that was not used for the longest time.
	maxEndpoints = 4096
	// callRate and callBurst limit calls of the Provisioner: calls per second, and calls in a row after a pause.
	callRate  = 5
	callBurst = 20
)

// cachedEndpoints reads endpoints from admin kubeconfigs and caches them by runtime.
type cachedEndpoints struct {
	kubeconfigs Kubeconfigs
	clock       clock.PassiveClock
	calls       *rate.Limiter
	cache       *cache.LRUExpireCache
}

// EndpointsOf returns Endpoints that read the endpoint from an admin kubeconfig and drop its credentials. It caches endpoints for 10
// minutes and requests at most 5 kubeconfigs a second for all clients together, because anybody may ask for an endpoint.
func EndpointsOf(kubeconfigs Kubeconfigs, clock clock.PassiveClock) Endpoints {
	return &cachedEndpoints{
		kubeconfigs: kubeconfigs, clock: clock, calls: rate.NewLimiter(callRate, callBurst),
		cache: cache.NewLRUExpireCacheWithClock(maxEndpoints, clock),
	}
}

// Endpoint implements Endpoints.
func (e *cachedEndpoints) Endpoint(ctx context.Context, instance environment.Instance) (Endpoint, error) {
	if cached, fresh := e.cache.Get(instance.RuntimeID); fresh {
		if endpoint, ok := cached.(Endpoint); ok {
			return endpoint, nil
		}
	}

	if !e.calls.AllowN(e.clock.Now(), 1) {
		return Endpoint{}, &httpserver.Refusal{
			Status: http.StatusTooManyRequests, Description: "Too many requests for kubeconfigs. Try again later.", RetryAfter: time.Second,
		}
	}

	kubeconfig, err := e.kubeconfigs.AdminKubeconfig(ctx, instance)
	if err != nil {
		return Endpoint{}, err
	}

	found, err := endpointIn(kubeconfig)
	if err == nil {
		e.cache.Add(instance.RuntimeID, found, endpointAge)
	}

	return found, err
}

// endpointIn returns the cluster of the current context.
func endpointIn(kubeconfig secret.String) (Endpoint, error) {
	parsed, err := clientcmd.Load([]byte(kubeconfig.Reveal()))
	if err == nil {
		if current, found := parsed.Contexts[parsed.CurrentContext]; found && parsed.Clusters[current.Cluster] != nil {
			cluster := parsed.Clusters[current.Cluster]

			return Endpoint{Server: cluster.Server, CA: cluster.CertificateAuthorityData}, nil
		}
	}

	// The error of the parser may quote the kubeconfig.
	return Endpoint{}, failure.New(failure.Permanent, "the Provisioner returned an invalid kubeconfig for the runtime").
		WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
}
