package clusterclient

import (
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// largestAnswer bounds what is read of an answer, in bytes: runtimes belong to tenants, and may answer anything.
const largestAnswer = 32 << 20

// Transport sends requests to the API server, as the one whom the configuration names. Its connections are its own and last until
// leave at most. They speak HTTP/1.1: a visit sends its requests one after the other.
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
