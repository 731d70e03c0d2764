package deployments

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/clients/applier"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/internal/upstream/kubeconfig"
)

const (
	// callTimeout limits the duration of each call to a target cluster.
	callTimeout = 30 * time.Second
	// largestResponse is the maximum size of a response, in bytes. A watch is restarted after it has received this many bytes.
	largestResponse = 32 << 20
	// callsPerCluster is the maximum number of concurrent calls to one cluster.
	callsPerCluster = 8
)

// clusters connects to target clusters. It keeps one connection for each kubeconfig, and one circuit breaker for each API server,
// as long as any BundleDeployment uses them.
type clusters struct {
	reader    client.Reader
	namespace string
	// pause is the time between attempts to reach a cluster that does not respond.
	pause time.Duration
	hub   *applier.Cluster

	mu       sync.Mutex
	targets  map[v1alpha1.SecretKeyReference]*target
	users    map[string]v1alpha1.SecretKeyReference
	breakers map[string]*upstream.System
}

// target is the connection to a cluster with the kubeconfig from one version of a Secret.
type target struct {
	version string
	host    string
	cluster *applier.Cluster
	// credentials holds back calls while the cluster rejects the kubeconfig.
	credentials *credentials
	// users contains the names of the BundleDeployments that use the Secret.
	users map[string]bool
}

func newClusters(options Options) (*clusters, error) {
	hub, err := applier.ConnectWatching(options.Hub, options.Hub)
	if err != nil {
		return nil, err
	}

	return &clusters{
		reader: options.Reader, namespace: options.Namespace, pause: options.UnreachableInterval, hub: hub,
		targets: map[v1alpha1.SecretKeyReference]*target{}, users: map[string]v1alpha1.SecretKeyReference{},
		breakers: map[string]*upstream.System{},
	}, nil
}

// of returns the connection to the target cluster of a BundleDeployment. It does not call the target cluster.
func (c *clusters) of(ctx context.Context, deployment *v1alpha1.BundleDeployment) (*applier.Cluster, error) {
	if deployment.Spec.Target == nil {
		c.release(deployment.Name)

		return c.hub, nil
	}

	reference := deployment.Spec.Target.KubeconfigSecretRef
	if reference.Key == "" {
		reference.Key = "kubeconfig"
	}

	name := c.namespace + "/" + reference.Name
	secret := &corev1.Secret{}

	if err := c.reader.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: reference.Name}, secret); err != nil {
		return nil, fmt.Errorf("reading the Secret %s with the kubeconfig: %w", name, err)
	}

	version := string(secret.UID) + secret.ResourceVersion

	c.mu.Lock()
	defer c.mu.Unlock()

	known := c.targets[reference]
	if known == nil || known.version != version {
		if len(secret.Data[reference.Key]) == 0 {
			return nil, fmt.Errorf("the Secret %s has no key %s: set spec.target.kubeconfigSecretRef.key, or add the kubeconfig under this key",
				name, reference.Key)
		}

		config, err := parseKubeconfig(secret.Data[reference.Key])
		if err != nil {
			return nil, fmt.Errorf("the key %s of the Secret %s is not a usable kubeconfig: %w", reference.Key, name, err)
		}

		made := &target{
			version: version, host: config.Host, credentials: &credentials{secret: name, pause: c.pause}, users: map[string]bool{},
		}
		if made.cluster, err = c.connect(config, name, made.credentials); err != nil {
			return nil, err
		}

		if known != nil {
			made.users = known.users
		}

		known = made
		c.targets[reference] = made
	}

	if former, ok := c.users[deployment.Name]; ok && former != reference {
		c.drop(deployment.Name)
	}

	known.users[deployment.Name], c.users[deployment.Name] = true, reference
	c.dropBreakers()

	return known.cluster, nil
}

// connect returns a connection to a cluster. Its calls, but not its watches, pass through the circuit breaker for the API server.
// Both are held back while the cluster rejects the kubeconfig.
func (c *clusters) connect(config *rest.Config, secret string, own *credentials) (*applier.Cluster, error) {
	config.QPS = -1
	config.Wrap(bounds.Responses(largestResponse))

	calls := rest.CopyConfig(config)
	calls.Timeout = callTimeout
	calls.Wrap(c.breaker(config.Host, secret).Transport)
	calls.Wrap(own.wrap) // outside of the circuit breaker, which would count a call that is held back as a failure
	calls.Wrap(oneAttempt)
	config.Wrap(own.wrap)
	config.Wrap(oneAttempt)

	return applier.ConnectWatching(calls, config)
}

// release records that a BundleDeployment no longer uses its target.
func (c *clusters) release(deployment string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.drop(deployment)
	c.dropBreakers()
}

// drop removes a BundleDeployment from the users of its target, and removes the target if it has no users left. The caller must
// hold the lock.
func (c *clusters) drop(deployment string) {
	reference, ok := c.users[deployment]
	if !ok {
		return
	}

	delete(c.users, deployment)
	delete(c.targets[reference].users, deployment)

	if len(c.targets[reference].users) == 0 {
		delete(c.targets, reference)
	}
}

// dropBreakers removes the circuit breakers of API servers that no target uses anymore.
func (c *clusters) dropBreakers() {
	used := map[string]bool{}
	for _, one := range c.targets {
		used[one.host] = true
	}

	for host := range c.breakers {
		if !used[host] {
			delete(c.breakers, host)
		}
	}
}

// breaker returns the circuit breaker for an API server. While the breaker is open, only one call per pause is made, for all
// BundleDeployments together.
func (c *clusters) breaker(host, secret string) *upstream.System {
	if c.breakers[host] == nil {
		c.breakers[host] = upstream.New(upstream.Options{
			Name: "target", Title: "the cluster of the Secret " + secret, Component: failure.ComponentRuntime,
			Calls: callsPerCluster, Pause: c.pause,
		})
	}

	return c.breakers[host]
}

// count returns the number of target clusters, and the number of those that do not respond or reject a kubeconfig.
func (c *clusters) count() (all, unavailable int) {
	c.mu.Lock()
	defer c.mu.Unlock()

	away := map[string]bool{}

	for host, breaker := range c.breakers {
		if breaker.Status().State != upstream.Closed {
			away[host] = true
		}
	}

	for _, one := range c.targets {
		if one.credentials.refused() {
			away[one.host] = true
		}
	}

	return len(c.breakers), len(away)
}

// parseKubeconfig parses a kubeconfig. It rejects exec plugins, auth providers and file references, because they would run
// programs or read files on the controller's machine.
func parseKubeconfig(text []byte) (*rest.Config, error) {
	parsed, err := clientcmd.Load(text)
	if err != nil {
		return nil, errors.New("it cannot be parsed") // the error may quote credentials
	}

	for _, user := range parsed.AuthInfos {
		if kubeconfig.RefersOutside(user) {
			return nil, errors.New("it must embed its token or client certificate: exec plugins, auth providers and file references are not allowed")
		}
	}

	for _, cluster := range parsed.Clusters {
		if cluster.CertificateAuthority != "" {
			return nil, errors.New("it must embed its CA certificate: file references are not allowed")
		}
	}

	config, err := clientcmd.NewDefaultClientConfig(*parsed, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, errors.New("its current context is missing or incomplete")
	}

	return config, nil
}
