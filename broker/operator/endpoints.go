package operator

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/secret"
)

const (
	// endpointAge is how long an endpoint is believed: certificates of clusters are exchanged from time to time.
	endpointAge = 10 * time.Minute
	// endpointsKept bounds the memory of endpoints.
	endpointsKept = 4096
	// callRate and callBurst bound how often endpoints are looked up, calls a second.
	callRate  = 5
	callBurst = 20
)

// rememberedEndpoints takes endpoints out of admin kubeconfigs, seldom.
type rememberedEndpoints struct {
	kubeconfigs Kubeconfigs
	clock       clock.PassiveClock
	calls       *rate.Limiter

	mutex sync.Mutex
	known map[string]remembered
}

type remembered struct {
	endpoint Endpoint
	until    time.Time
}

// EndpointsOf finds endpoints in admin kubeconfigs, whose credentials it drops. What it has found it remembers for a while, and it
// makes only so many kubeconfigs a second, whoever asks.
func EndpointsOf(kubeconfigs Kubeconfigs, clock clock.PassiveClock) Endpoints {
	return &rememberedEndpoints{
		kubeconfigs: kubeconfigs, clock: clock, calls: rate.NewLimiter(callRate, callBurst), known: map[string]remembered{},
	}
}

// Endpoint implements Endpoints.
func (e *rememberedEndpoints) Endpoint(ctx context.Context, instance environment.Instance) (Endpoint, error) {
	if known, fresh := e.recall(instance.RuntimeID); fresh {
		return known, nil
	}

	if !e.calls.AllowN(e.clock.Now(), 1) {
		return Endpoint{}, &httpserver.Refusal{
			Status: http.StatusTooManyRequests, Description: textTooManyCalls, RetryAfter: time.Second,
		}
	}

	kubeconfig, err := e.kubeconfigs.AdminKubeconfig(ctx, instance)
	if err != nil {
		return Endpoint{}, err
	}

	found, err := endpointIn(kubeconfig)
	if err == nil {
		e.remember(instance.RuntimeID, found)
	}

	return found, err
}

func (e *rememberedEndpoints) recall(runtimeID string) (Endpoint, bool) {
	e.mutex.Lock()
	defer e.mutex.Unlock()

	known, found := e.known[runtimeID]

	return known.endpoint, found && e.clock.Now().Before(known.until)
}

func (e *rememberedEndpoints) remember(runtimeID string, endpoint Endpoint) {
	e.mutex.Lock()
	defer e.mutex.Unlock()

	if len(e.known) >= endpointsKept {
		clear(e.known)
	}

	e.known[runtimeID] = remembered{endpoint: endpoint, until: e.clock.Now().Add(endpointAge)}
}

// endpointIn reads the cluster of the current context.
func endpointIn(kubeconfig secret.String) (Endpoint, error) {
	parsed, err := clientcmd.Load([]byte(kubeconfig.Reveal()))
	if err == nil {
		if current, found := parsed.Contexts[parsed.CurrentContext]; found && parsed.Clusters[current.Cluster] != nil {
			cluster := parsed.Clusters[current.Cluster]

			return Endpoint{Server: cluster.Server, CA: cluster.CertificateAuthorityData}, nil
		}
	}

	// The error of the parser may quote the kubeconfig.
	return Endpoint{}, failure.New(failure.Permanent, "the kubeconfig of the runtime cannot be read").
		WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
}
