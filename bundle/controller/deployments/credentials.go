package deployments

import (
	"net/http"
	"sync"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// rejections is the number of consecutive calls that a cluster must reject before further calls with the same kubeconfig are held
// back.
const rejections = 5

// credentials holds back the calls and watches that use a kubeconfig while the cluster rejects this kubeconfig with status 401.
// During that time, it permits only one trial call per pause, for all BundleDeployments together. The circuit breaker for the API
// server cannot do this, because the cluster is working and may accept other kubeconfigs. Each version of the Secret has its own
// credentials value.
//
// An upstream.System cannot be used here. Its calls last until their responses are read, so if the trial call is a watch, all
// other calls would be held back for minutes. It also counts lost connections and calls that the circuit breaker for the API
// server rejects, although neither means that the kubeconfig is rejected.
type credentials struct {
	// secret is the namespace and the name of the Secret, for messages.
	secret string
	pause  time.Duration

	mu       sync.Mutex
	rejected int
	// next is the time of the next trial call; zero means that calls are not held back. trial reports whether a trial call is in
	// progress.
	next  time.Time
	trial bool
}

// wrap returns a transport that holds back requests while the kubeconfig is rejected.
func (c *credentials) wrap(next http.RoundTripper) http.RoundTripper {
	return guarded{credentials: c, next: next}
}

// refused reports whether calls are held back.
func (c *credentials) refused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return !c.next.IsZero()
}

// admit returns an error if the call must be held back. Otherwise, it reports whether the call is a trial.
func (c *credentials) admit() (trial bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	switch {
	case c.next.IsZero():
		return false, nil
	case c.trial || time.Now().Before(c.next):
		return false, failure.New(failure.Transient, "the cluster of the Secret %s rejects the kubeconfig: replace it; the next attempt is at %s",
			c.secret, c.next.UTC().Format(time.RFC3339)).WithReason(failure.ReasonSystemUnavailable, failure.ComponentRuntime)
	default:
		c.trial = true

		return true, nil
	}
}

// end records the status of the response to a call. The status is 0 if there was no response, which does not show whether the
// kubeconfig is rejected.
func (c *credentials) end(trial bool, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if trial {
		c.trial = false
	}

	switch status {
	case 0:
	case http.StatusUnauthorized:
		if c.rejected++; c.rejected >= rejections {
			c.next = time.Now().Add(c.pause)
		}
	default:
		c.rejected, c.next = 0, time.Time{}
	}
}

// guarded is the transport that credentials.wrap returns.
type guarded struct {
	credentials *credentials
	next        http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (g guarded) RoundTrip(request *http.Request) (*http.Response, error) {
	trial, err := g.credentials.admit()
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close() // the contract of http.RoundTripper requires this
		}

		return nil, err
	}

	status := 0
	defer func() { g.credentials.end(trial, status) }()

	response, err := g.next.RoundTrip(request)
	if err == nil {
		status = response.StatusCode
	}

	return response, err //nolint:wrapcheck // the caller classifies errors of the transport
}
