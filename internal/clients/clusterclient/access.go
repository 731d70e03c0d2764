package clusterclient

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream/kubeconfig"
	"github.com/environment-broker/environment-broker/internal/upstream/networks"
)

// probeTimeout limits the duration of a session with a runtime. A session consists of the requests of one action, such as a
// probe or the removal of service instances.
const probeTimeout = 15 * time.Second

// Kubeconfigs issues admin kubeconfigs; *provisionerclient.Client implements it. Errors carry a failure.Kind. The kind is Waiting
// if the cluster does not exist yet.
type Kubeconfigs interface {
	Kubeconfig(ctx context.Context, tenant, runtimeID string) (secret.String, error)
}

// Endpoints records the addresses of runtimes. Errors carry a failure.Kind.
type Endpoints interface {
	Record(ctx context.Context, instance environment.Instance, endpoint environment.Endpoint) error
}

// Access calls the API servers of instances' runtimes. It is safe for concurrent use.
type Access struct {
	kubeconfigs Kubeconfigs
	endpoints   Endpoints
	networks    networks.Networks
}

// New returns an Access that requests an admin kubeconfig for each session.
func New(kubeconfigs Kubeconfigs) Access {
	return Access{kubeconfigs: kubeconfigs}
}

// Recording returns an Access that also stores the API server's address from each admin kubeconfig in endpoints.
func (a Access) Recording(endpoints Endpoints) Access {
	a.endpoints = endpoints

	return a
}

// Allowing returns an Access that connects to tenants' own clusters not only at public addresses but also in the allowed
// networks.
func (a Access) Allowing(allowed networks.Networks) Access {
	a.networks = allowed

	return a
}

// connections returns the transport for the instance's runtime. For a tenant's own cluster, it connects only to permitted
// addresses.
func (a Access) connections(instance environment.Instance) *http.Transport {
	if instance.Request.Cluster.Own != nil {
		return a.networks.Transport(probeTimeout)
	}

	return trusted()
}

// AdminKubeconfig returns a new admin kubeconfig of the instance's runtime. Callers must not store it in the database; the only
// other place where it may be stored is the Secret for Lifecycle Manager. If the instance has no runtime, the error is of kind
// failure.NotFound. If the address in the kubeconfig cannot be recorded, AdminKubeconfig returns an error, because an instance
// must not become ready without a recorded address.
func (a Access) AdminKubeconfig(ctx context.Context, instance environment.Instance) (secret.String, error) {
	kubeconfig, _, err := a.adminKubeconfig(ctx, instance)

	return kubeconfig, err
}

// adminKubeconfig returns an admin kubeconfig like AdminKubeconfig, and its parsed form, which is nil if the kubeconfig is invalid.
func (a Access) adminKubeconfig(ctx context.Context, instance environment.Instance) (secret.String, *clientcmdapi.Config, error) {
	if instance.RuntimeID == "" {
		return "", nil, failure.New(failure.NotFound, "instance %s has no runtime", instance.ID).
			WithReason(failure.ReasonClusterNotFound, failure.ComponentBroker)
	}

	kubeconfig, err := a.kubeconfigs.Kubeconfig(ctx, instance.RuntimeTenant(), instance.RuntimeID)
	if err != nil {
		return "", nil, err
	}

	parsed, err := clientcmd.Load([]byte(kubeconfig.Reveal()))
	if err != nil {
		return kubeconfig, nil, nil //nolint:nilerr // there is no address to record; restConfig returns an error
	}

	if endpoint, valid := endpointIn(parsed); valid && a.endpoints != nil {
		if err := a.endpoints.Record(ctx, instance, endpoint); err != nil {
			return "", nil, err
		}
	}

	return kubeconfig, parsed, nil
}

// endpointIn returns the API server's address and certificate authority from the current context of a kubeconfig, and false if
// there is no address.
func endpointIn(parsed *clientcmdapi.Config) (environment.Endpoint, bool) {
	current, found := parsed.Contexts[parsed.CurrentContext]
	if !found || parsed.Clusters[current.Cluster] == nil {
		return environment.Endpoint{}, false
	}

	cluster := parsed.Clusters[current.Cluster]

	return environment.Endpoint{Server: cluster.Server, CA: cluster.CertificateAuthorityData}, cluster.Server != ""
}

// config returns a client configuration: from the tenant's kubeconfig if the instance uses the tenant's own cluster, and from a
// new admin kubeconfig otherwise.
func (a Access) config(ctx context.Context, instance environment.Instance) (*rest.Config, error) {
	if own := instance.Request.Cluster.Own; own != nil {
		return parse(own.Kubeconfig.Reveal())
	}

	return a.adminConfig(ctx, instance)
}

// adminConfig returns a client configuration from a new admin kubeconfig.
func (a Access) adminConfig(ctx context.Context, instance environment.Instance) (*rest.Config, error) {
	_, parsed, err := a.adminKubeconfig(ctx, instance)
	if err != nil {
		return nil, err
	}

	return restConfig(parsed)
}

// Probe returns nil if the API server of the instance's runtime accepts the kubeconfig. If the kubeconfig is unusable, or if its
// address is in a network that tenants' clusters may not use, the error is failure.Permanent. Any error of the API server is
// failure.Transient, even if it rejects the credentials, because a new cluster might not be complete yet.
func (a Access) Probe(ctx context.Context, instance environment.Instance) error {
	config, err := a.config(ctx, instance)
	if err != nil {
		return err
	}

	return inSession(ctx, config, a.connections(instance), func(ctx context.Context, client *rest.RESTClient) error {
		err := requestVersion(ctx, client)
		if err == nil {
			return nil
		}

		kind := failure.Transient
		if errors.Is(err, networks.ErrRefused) {
			kind = failure.Permanent
		}

		return failure.Wrap(kind, err, "the cluster at %s is not reachable: %s", hostOf(config), causeOf(err)).
			WithReason(failure.ReasonClusterUnreachable, failure.ComponentRuntime).WithDetail(reported(err))
	})
}

// inRuntime runs work in a session with the instance's runtime, for at most probeTimeout.
func (a Access) inRuntime(ctx context.Context, instance environment.Instance, work func(ctx context.Context, client *rest.RESTClient) error) error {
	config, err := a.config(ctx, instance)
	if err != nil {
		return err
	}

	return inSession(ctx, config, a.connections(instance), work)
}

// Check validates a kubeconfig from a tenant without calling the cluster. The error never quotes the kubeconfig.
func Check(kubeconfig secret.String) error {
	config, err := parse(kubeconfig)
	if err != nil {
		return err
	}

	address, err := url.Parse(config.Host)
	if err != nil || address.Scheme != "https" || address.Host == "" || address.User != nil || address.RawQuery != "" {
		return failure.New(failure.Invalid, "the address of its API server does not have the form https://api.example.com")
	}

	return nil
}

// parse parses a kubeconfig and returns its client configuration; see restConfig.
func parse(kubeconfig secret.String) (*rest.Config, error) {
	parsed, err := clientcmd.Load([]byte(kubeconfig.Reveal()))
	if err != nil {
		parsed = nil
	}

	return restConfig(parsed)
}

// restConfig returns the client configuration from a kubeconfig. parsed is nil if the kubeconfig could not be parsed. The
// kubeconfig may come from a tenant, so restConfig rejects references to exec plugins, auth providers, files and proxies.
// Otherwise, client-go would run the plugins and read the files on the broker's machine.
func restConfig(parsed *clientcmdapi.Config) (*rest.Config, error) {
	if parsed == nil {
		return nil, unusable("it is not a kubeconfig")
	}

	for _, user := range parsed.AuthInfos {
		if kubeconfig.RefersOutside(user) {
			return nil, unusable("it refers to exec plugins, auth providers or files")
		}
	}

	for _, cluster := range parsed.Clusters {
		if cluster.CertificateAuthority != "" || cluster.ProxyURL != "" {
			return nil, unusable("it refers to files or a proxy")
		}
	}

	config, err := clientcmd.NewNonInteractiveClientConfig(*parsed, parsed.CurrentContext, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, unusable("its current context is missing or incomplete")
	}

	config.Timeout = probeTimeout

	return config, nil
}

// unusable returns the error for an invalid kubeconfig. The error has no cause, because a cause might quote the kubeconfig.
func unusable(why string) error {
	return failure.New(failure.Permanent, "the kubeconfig of the runtime is unusable: %s", why).
		WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
}
