package gardenclient

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/internal/program/reload"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

const (
	// callTimeout limits the duration of a method call, which may consist of several requests.
	callTimeout = 30 * time.Second
	// maxResponseBytes limits the size of a response body. The largest regular response is a page of Shoots, which stays below
	// the limit.
	maxResponseBytes = 64 << 20
	// pageSize is the maximum number of objects in one page of a list.
	pageSize = 500
)

// Kind is the kind of the Gardener bindings that represent accounts.
type Kind string

const (
	// CredentialsBinding is the kind of Gardener's current API.
	CredentialsBinding Kind = "CredentialsBinding"
	// SecretBinding is the deprecated kind. Gardener rejects it in Shoots with Kubernetes 1.34 or newer.
	SecretBinding Kind = "SecretBinding"
)

// resource identifies an API resource by its group, version and plural name.
type resource struct {
	schema.GroupVersion

	plural string
}

func (k Kind) resource() resource {
	if k == SecretBinding {
		return resource{core(), "secretbindings"}
	}

	return resource{schema.GroupVersion{Group: "security.gardener.cloud", Version: "v1alpha1"}, "credentialsbindings"}
}

// core returns the API group and version of Shoots.
func core() schema.GroupVersion {
	return schema.GroupVersion{Group: "core.gardener.cloud", Version: "v1beta1"}
}

// Options configures a Client.
type Options struct {
	// Namespace is the namespace of the Gardener project.
	Namespace string
	Kind      Kind
	// System limits concurrent calls and contains the circuit breaker. It can be nil in tests.
	System *upstream.System
}

// Client reads and labels the accounts of a Gardener project. It is safe for concurrent use. Errors carry a failure.Kind.
type Client struct {
	options Options
	// api returns the current connection, which Follow replaces when the kubeconfig changes.
	api func() rest.Interface
}

// New returns a client for the API server in config. It does not send a request.
func New(config *rest.Config, options Options) (*Client, error) {
	api, err := connect(config, options)
	if err != nil {
		return nil, err
	}

	return &Client{options: options, api: func() rest.Interface { return api }}, nil
}

// Follow returns a client with the credentials of a kubeconfig file. After the file has changed, new calls use the new
// credentials. If the file becomes invalid, the client continues with the old credentials, and the watcher reports the error.
func Follow(kubeconfigPath string, files *reload.Watcher, options Options) (*Client, error) {
	connections, err := reload.Load("gardener kubeconfig", func([][]byte) (rest.Interface, error) {
		// BuildConfigFromFlags also reads the files to which the kubeconfig refers.
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfigPath)
		if err != nil {
			return nil, fmt.Errorf("reading the Gardener kubeconfig from %s: %w", kubeconfigPath, err)
		}

		return connect(config, options)
	}, kubeconfigPath)
	if err != nil {
		return nil, err
	}

	reload.Watch(files, connections, nil)

	return &Client{options: options, api: connections.Get}, nil
}

// connect returns a connection that limits the size of responses and sends all requests through options.System.
func connect(config *rest.Config, options Options) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})

	config = rest.CopyConfig(config)
	config.GroupVersion = new(core())
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.QPS, config.Burst = 100, 200 // Hundreds of operations share this client. Gardener has its own limits.
	config.WarningHandlerWithContext = rest.NoWarnings{}

	if options.System != nil {
		config.Wrap(options.System.Transport)
	}

	config.Wrap(bounds.Responses(maxResponseBytes))

	api, err := rest.RESTClientFor(config)

	return api, failure.While(err, "creating a Gardener client")
}

// Probe lists a single account, which tests the connection, the credentials and the permissions. upstream.Recovery calls it
// during an outage.
func (c *Client) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	_, err := c.list(ctx, c.options.Kind.resource(), "", "1", "")

	return explain(err, "listing one account")
}

// request returns a request for a resource in the namespace. The request is not retried, because the engine and the callers
// already retry.
func (c *Client) request(verb string, of resource, name string) *rest.Request {
	path := []string{"apis", of.Group, of.Version, "namespaces", c.options.Namespace, of.plural}
	if name != "" {
		path = append(path, name)
	}

	return c.api().Verb(verb).AbsPath(path...).MaxRetries(0)
}
