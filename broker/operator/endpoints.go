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
	// maxEndpoints limits the size of the cache, which drops the endpoint that was not used for the longest
	// time.
	maxEndpoints = 4096
	// callRate and callBurst limit calls of the Provisioner: calls per second, and calls in a row after a
	// pause.
	callRate  = 5
	callBurst = 20
)

// endpoint is the public part of a cluster's connection data: it grants no access.
type endpoint struct {
	// server is the URL of the API server.
	server string
	// ca is the certificate authority of the API server, as PEM.
	ca []byte
}

// cachedEndpoints reads endpoints from admin kubeconfigs, whose credentials it drops, and caches the endpoints
// by runtime.
//
// Unauthenticated requests ask for endpoints, and an admin kubeconfig costs calls of the Provisioner and of
// Gardener. The cache and one limit for all clients together bound this cost. Only valid endpoints are cached.
// It is safe for concurrent use.
type cachedEndpoints struct {
	kubeconfigs Kubeconfigs
	clock       clock.PassiveClock
	calls       *rate.Limiter
	// cache has endpoints by the ID of the runtime.
	cache *cache.LRUExpireCache
}

func newCachedEndpoints(kubeconfigs Kubeconfigs, clock clock.PassiveClock) *cachedEndpoints {
	return &cachedEndpoints{
		kubeconfigs: kubeconfigs, clock: clock, calls: rate.NewLimiter(callRate, callBurst),
		cache: cache.NewLRUExpireCacheWithClock(maxEndpoints, clock),
	}
}

// of returns the endpoint of the instance's runtime. Its errors are of package failure, or a Refusal with 429
// above the rate of calls. Two concurrent requests for the same runtime may both call the Provisioner.
func (e *cachedEndpoints) of(ctx context.Context, instance environment.Instance) (endpoint, error) {
	if cached, fresh := e.cache.Get(instance.RuntimeID); fresh {
		if known, ok := cached.(endpoint); ok {
			return known, nil
		}
	}

	if !e.calls.AllowN(e.clock.Now(), 1) {
		return endpoint{}, &httpserver.Refusal{
			Status: http.StatusTooManyRequests, Description: "Too many requests for kubeconfigs. Try again later.", RetryAfter: time.Second,
		}
	}

	kubeconfig, err := e.kubeconfigs.AdminKubeconfig(ctx, instance)
	if err != nil {
		return endpoint{}, err
	}

	found, err := endpointIn(kubeconfig)
	if err == nil {
		e.cache.Add(instance.RuntimeID, found, endpointAge)
	}

	return found, err
}

// endpointIn returns the cluster of the current context. The error never quotes the kubeconfig.
func endpointIn(kubeconfig secret.String) (endpoint, error) {
	parsed, err := clientcmd.Load([]byte(kubeconfig.Reveal()))
	if err == nil {
		if current, found := parsed.Contexts[parsed.CurrentContext]; found && parsed.Clusters[current.Cluster] != nil {
			cluster := parsed.Clusters[current.Cluster]

			return endpoint{server: cluster.Server, ca: cluster.CertificateAuthorityData}, nil
		}
	}

	// The error of the parser may quote the kubeconfig.
	return endpoint{}, failure.New(failure.Permanent, "the Provisioner returned an invalid kubeconfig for the runtime").
		WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
}
