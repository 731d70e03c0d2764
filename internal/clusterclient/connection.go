package clusterclient

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// connect returns an HTTP client of the API server for one session. disconnect closes its connections. The client does not follow redirects.
func connect(config *rest.Config) (client *http.Client, disconnect func(), err error) {
	transport, disconnect, err := Transport(config)
	if err != nil {
		return nil, nil, unusable("its certificates or credentials cannot be used")
	}

	return &http.Client{
		Transport: transport, Timeout: config.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // credentials must not go to another host
	}, disconnect, nil
}

// askVersion fails unless the API server returns its version. That needs no rights, but invalid credentials are rejected.
func askVersion(ctx context.Context, client *http.Client, config *rest.Config) error {
	address, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("reading the address of the API server: %w", err)
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.JoinPath("version").String(), nil)
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}

	response, err := client.Do(request)
	if err != nil {
		return err
	}

	if err := response.Body.Close(); err != nil {
		return fmt.Errorf("reading the answer of the API server: %w", err)
	}

	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the API server answers with %s", response.Status)
	}

	return nil
}

// largestAnswer bounds response bodies, in bytes: runtimes belong to tenants and may answer anything.
const largestAnswer = 32 << 20

// Transport returns an authenticated transport to the API server of the configuration. It serves one session: client-go would cache
// connections per kubeconfig forever. Call disconnect at the end. It speaks HTTP/1.1, as a session sends one request at a time.
func Transport(config *rest.Config) (transport http.RoundTripper, leave func(), err error) {
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
