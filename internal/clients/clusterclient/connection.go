package clusterclient

import (
	"context"
	"net/http"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// codecs encodes and decodes only the API groups that this package uses. The typed clients of client-go are not used, because
// they would link all Kubernetes types into the broker. Registering the kinds takes longer than a request, so all sessions share
// the result.
var codecs = sync.OnceValue(func() runtime.NegotiatedSerializer { //nolint:gochecknoglobals // never changes
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, rbacv1.AddToScheme, authenticationv1.AddToScheme)
	utilruntime.Must(builder.AddToScheme(scheme)) // cannot fail: the kinds are constants

	return serializer.NewCodecFactory(scheme).WithoutConversion()
})

// connect returns a client for one session with the API server over new connections. The caller must call disconnect at the end
// of the session. The client does not follow redirects, so it never sends the credentials to another host.
func connect(config *rest.Config, connections *http.Transport) (api *rest.RESTClient, disconnect func(), err error) {
	transport, disconnect, err := authenticated(config, connections)
	if err != nil {
		return nil, nil, unusable("its certificates or credentials cannot be used")
	}

	config = rest.CopyConfig(config)
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = codecs()
	config.QPS = -1 // at the default of five requests per second, a session ends before it has removed a hundred objects

	api, err = rest.RESTClientForConfigAndClient(config, &http.Client{
		Transport: transport, Timeout: config.Timeout,
		CheckRedirect: upstream.NoRedirects,
	})
	if err != nil {
		return nil, nil, unusable("it is incomplete")
	}

	return api, disconnect, nil
}

// inSession runs work in a session with the API server, for at most probeTimeout.
func inSession(ctx context.Context, config *rest.Config, connections *http.Transport,
	work func(ctx context.Context, client *rest.RESTClient) error,
) error {
	client, disconnect, err := connect(config, connections)
	if err != nil {
		return err
	}
	defer disconnect()

	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()

	return work(ctx, client)
}

// requestVersion requests the API server's version without retries. The request does not need any permissions, but fails if the
// credentials are invalid. It therefore verifies a kubeconfig with any role.
func requestVersion(ctx context.Context, api *rest.RESTClient) error {
	err := api.Get().AbsPath("version").MaxRetries(0).Do(ctx).Error()

	return failure.While(err, "requesting the version of the API server")
}

// maxResponseBytes limits the size of a response body. Runtimes belong to tenants, who could send endless responses.
const maxResponseBytes = 32 << 20

// Transport returns an authenticated transport for one session with the API server of the configuration. The caller must call
// disconnect at the end of the session. The transports of client-go are not suitable, because client-go caches them per
// kubeconfig and never closes them. The transport uses HTTP/1.1, because a session sends one request at a time.
func Transport(config *rest.Config) (transport http.RoundTripper, disconnect func(), err error) {
	return authenticated(config, trusted())
}

// trusted returns a transport for Gardener's clusters, whose addresses need not be checked.
func trusted() *http.Transport { return &http.Transport{Proxy: http.ProxyFromEnvironment} }

// authenticated configures the transport to use the certificate authority and the credentials of config, and limits the size of
// responses.
func authenticated(config *rest.Config, connections *http.Transport) (transport http.RoundTripper, disconnect func(), err error) {
	if connections.TLSClientConfig, err = rest.TLSConfigFor(config); err != nil {
		return nil, nil, err
	}

	transport, err = rest.HTTPWrappersForConfig(config, bounds.Responses(maxResponseBytes)(connections))
	if err != nil {
		return nil, nil, err
	}

	return tracing.Transport("runtime", transport), connections.CloseIdleConnections, nil
}
