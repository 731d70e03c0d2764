package bundles

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/internal/program/reload"
)

const (
	// callTimeout limits a call to the hub.
	callTimeout = 15 * time.Second
	// largestList is the maximum size of a response from the hub, in bytes. Lists are the largest responses.
	largestList = 64 << 20
)

// Hub is a connection to the cluster of the bundle provisioner.
type Hub struct{ connection func() connection }

type connection struct {
	client client.Client
	config *rest.Config
}

// Follow returns a connection that uses the kubeconfig file and follows its changes. It fails if the file is invalid at the
// start. The wrap function wraps the transport of all calls.
func Follow(kubeconfigPath string, files *reload.Watcher, wrap func(http.RoundTripper) http.RoundTripper) (*Hub, error) {
	connections, err := reload.Load("kubeconfig of the bundle provisioner", func([][]byte) (connection, error) {
		// BuildConfigFromFlags reads the kubeconfig and the files to which it refers.
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfigPath)
		if err != nil {
			return connection{}, err //nolint:wrapcheck // the caller names the file
		}

		return connect(config, wrap)
	}, kubeconfigPath)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the variable
	}

	reload.Watch(files, connections, func(connection) {})

	return &Hub{connections.Get}, nil
}

// Connect returns a connection with a fixed configuration.
func Connect(config *rest.Config, wrap func(http.RoundTripper) http.RoundTripper) (*Hub, error) {
	made, err := connect(config, wrap)

	return &Hub{func() connection { return made }}, err
}

func connect(given *rest.Config, wrap func(http.RoundTripper) http.RoundTripper) (connection, error) {
	config := rest.CopyConfig(given)
	config.Timeout, config.QPS, config.WarningHandlerWithContext = callTimeout, -1, rest.NoWarnings{}
	config.Wrap(bounds.Responses(largestList))
	config.Wrap(wrap)

	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return connection{}, fmt.Errorf("registering the kinds of the bundle provisioner: %w", err)
	}

	// Fixed mappings save a discovery call for each connection. These kinds never change.
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.GroupVersion.WithKind(v1alpha1.KindBundle), meta.RESTScopeRoot)
	mapper.Add(v1alpha1.GroupVersion.WithKind(v1alpha1.KindBundleDeployment), meta.RESTScopeRoot)

	api, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return connection{}, fmt.Errorf("creating a client of the bundle provisioner's cluster: %w", err)
	}

	return connection{api, config}, nil
}

// Client returns a client that uses the current kubeconfig.
func (h *Hub) Client() client.Client { return h.connection().client }

// Config returns the client configuration from the current kubeconfig.
func (h *Hub) Config() *rest.Config { return h.connection().config }

// Probe makes a call for which the Installer's permissions suffice. The circuit breaker calls it to detect recovery.
func (h *Hub) Probe(ctx context.Context) error {
	if err := h.Client().List(ctx, &v1alpha1.BundleDeploymentList{}, client.Limit(1)); err != nil {
		return fmt.Errorf("listing BundleDeployments: %w", err)
	}

	return nil
}
