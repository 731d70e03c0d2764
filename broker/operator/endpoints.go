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
	// endpointAge is the maximum age of a cached endpoint. It is short because clusters rotate their certificates.
	endpointAge = 10 * time.Minute
	// maxEndpoints is the maximum size of the cache. A full cache drops the least recently used endpoint.
	maxEndpoints = 4096
	// callRate and callBurst limit the calls to the Provisioner: callRate is the rate per second, and callBurst the
	// number of calls that may exceed the rate after a pause.
	callRate  = 5
	callBurst = 20
)

// endpoint is the public part of the connection data of a cluster. It does not grant access.
type endpoint struct {
	// server is the URL of the API server.
	server string
	// ca is the certificate authority of the API server, as PEM.
	ca []byte
}

// cachedEndpoints reads the endpoint of a runtime from an admin kubeconfig and caches it. It discards the credentials.
//
// Clients without credentials can request endpoints, and each admin kubeconfig costs calls to the Provisioner and to
// Gardener. The cache, and a rate limit that all clients share, bound this cost. Only valid endpoints are cached. A
// cachedEndpoints is safe for concurrent use.
type cachedEndpoints struct {
	kubeconfigs Kubeconfigs
	clock       clock.PassiveClock
	calls       *rate.Limiter
	// cache maps the ID of a runtime to its endpoint.
	cache *cache.LRUExpireCache
}

func newCachedEndpoints(kubeconfigs Kubeconfigs, clock clock.PassiveClock) *cachedEndpoints {
	return &cachedEndpoints{
		kubeconfigs: kubeconfigs, clock: clock, calls: rate.NewLimiter(callRate, callBurst),
		cache: cache.NewLRUExpireCacheWithClock(maxEndpoints, clock),
	}
}

// of returns the endpoint of the instance's runtime. If the rate limit is exceeded, the error is a Refusal with status
// 429; all other errors are of type failure.Error. Two concurrent requests for the same runtime may both call the
// Provisioner.
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

// endpointIn returns the endpoint of the current context. The error never quotes the kubeconfig.
func endpointIn(kubeconfig secret.String) (endpoint, error) {
	parsed, err := clientcmd.Load([]byte(kubeconfig.Reveal()))
	if err == nil {
		if current, found := parsed.Contexts[parsed.CurrentContext]; found && parsed.Clusters[current.Cluster] != nil {
			cluster := parsed.Clusters[current.Cluster]

			return endpoint{server: cluster.Server, ca: cluster.CertificateAuthorityData}, nil
		}
	}

	// Do not wrap the error of the parser: it may quote the kubeconfig.
	return endpoint{}, failure.New(failure.Permanent, "the Provisioner returned an invalid kubeconfig for the runtime").
		WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
}
