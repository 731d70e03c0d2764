package clusterclient

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// connect returns an HTTP client for one session with the API server. The caller must call disconnect at the end of the session. The client
// does not follow redirects, so that the credentials go to no other host.
func connect(config *rest.Config) (client *http.Client, disconnect func(), err error) {
	transport, disconnect, err := Transport(config)
	if err != nil {
		return nil, nil, unusable("its certificates or credentials cannot be used")
	}

	return &http.Client{
		Transport: transport, Timeout: config.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, disconnect, nil
}

// askVersion requests the version of the API server. The request needs no rights, but API servers reject invalid credentials.
func askVersion(ctx context.Context, client *http.Client, config *rest.Config) error {
	address, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("reading the address of the API server: %w", err)
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.JoinPath("version").String(), nil)
	if err != nil {
		return fmt.Errorf("requesting the version of the API server: %w", err)
	}

	response, err := client.Do(request)
	if err != nil {
		return err
	}

	if err := response.Body.Close(); err != nil {
		return fmt.Errorf("reading the response of the API server: %w", err)
	}

	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("requesting the version of the API server: status %s", response.Status)
	}

	return nil
}

// largestAnswer bounds the body of a response in bytes. Runtimes belong to tenants, who could return endless responses.
const largestAnswer = 32 << 20

// Transport returns an authenticated transport for one session with the API server of the configuration. The caller must call disconnect at
// the end of the session. The transports of client-go do not fit, because client-go caches them per kubeconfig and never closes them. Transport
// speaks HTTP/1.1: a session sends one request at a time.
func Transport(config *rest.Config) (transport http.RoundTripper, disconnect func(), err error) {
	trust, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, nil, err
	}

	connections := &http.Transport{TLSClientConfig: trust, Proxy: http.ProxyFromEnvironment}

	authenticated, err := rest.HTTPWrappersForConfig(config, upstream.Bounded(largestAnswer)(connections))
	if err != nil {
		return nil, nil, err
	}

	return tracing.Transport("runtime", authenticated), connections.CloseIdleConnections, nil
}
