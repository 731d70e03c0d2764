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
	"github.com/environment-broker/environment-broker/internal/applier"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

const (
	// callTimeout bounds each call to a target cluster.
	callTimeout = 30 * time.Second
	// largestResponse bounds the size of a response, in bytes.
	largestResponse = 32 << 20
	// callsPerCluster is the number of concurrent calls to one cluster.
	callsPerCluster = 8
)

// clusters connects to target clusters. It keeps one connection for each kubeconfig, and one circuit breaker for each API server.
type clusters struct {
	reader    client.Reader
	namespace string
	hub       *applier.Cluster

	mu       sync.Mutex
	targets  map[v1alpha1.SecretKeyReference]target
	breakers map[string]*upstream.System
}

// target is the connection for one version of a Secret.
type target struct {
	version string
	cluster *applier.Cluster
}

func newClusters(options Options) (*clusters, error) {
	hub, err := applier.Connect(options.Hub)
	if err != nil {
		return nil, err
	}

	return &clusters{
		reader: options.Reader, namespace: options.Namespace, hub: hub,
		targets: map[v1alpha1.SecretKeyReference]target{}, breakers: map[string]*upstream.System{},
	}, nil
}

// of returns the connection to the target of a BundleDeployment. It makes no call to the target.
func (c *clusters) of(ctx context.Context, deployment *v1alpha1.BundleDeployment) (*applier.Cluster, error) {
	if deployment.Spec.Target == nil {
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

	if known := c.targets[reference]; known.version == version {
		return known.cluster, nil
	}

	config, err := parseKubeconfig(secret.Data[reference.Key])
	if err != nil {
		return nil, fmt.Errorf("the key %s of the Secret %s is not a usable kubeconfig: %w", reference.Key, name, err)
	}

	config.Timeout = callTimeout
	config.QPS = -1
	config.Wrap(upstream.Bounded(largestResponse))
	config.Wrap(c.breaker(config.Host, name).Transport)

	made, err := applier.Connect(config)
	if err != nil {
		return nil, err
	}

	c.targets[reference] = target{version, made}

	return made, nil
}

// breaker returns the circuit breaker of an API server.
func (c *clusters) breaker(host, secret string) *upstream.System {
	if c.breakers[host] == nil {
		c.breakers[host] = upstream.New(upstream.Options{
			Name: "target", Title: "the cluster of the Secret " + secret, Component: failure.ComponentRuntime,
			Calls: callsPerCluster, Variable: "per cluster",
		})
	}

	return c.breakers[host]
}

// parseKubeconfig parses a kubeconfig. It accepts only data that the kubeconfig itself contains: a program or a file that it names would
// be one of the controller.
func parseKubeconfig(text []byte) (*rest.Config, error) {
	parsed, err := clientcmd.Load(text)
	if err != nil {
		return nil, errors.New("it cannot be parsed") // the error may quote credentials
	}

	for _, user := range parsed.AuthInfos {
		if user.Exec != nil || user.AuthProvider != nil || user.ClientCertificate != "" || user.ClientKey != "" || user.TokenFile != "" {
			return nil, errors.New("it must contain a token or a certificate itself, and name no program and no file")
		}
	}

	for _, cluster := range parsed.Clusters {
		if cluster.CertificateAuthority != "" {
			return nil, errors.New("it must contain the certificate authority itself, and name no file")
		}
	}

	config, err := clientcmd.NewDefaultClientConfig(*parsed, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, errors.New("its current context is incomplete")
	}

	return config, nil
}
