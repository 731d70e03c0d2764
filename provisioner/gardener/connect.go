package gardener

import (
	"context"
	"fmt"
	"net/http"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/reload"
)

// connection is a connection to Gardener, used until Follow replaces it.
type connection struct {
	client.WithWatch

	// replaced ends watches: they must start again on the next connection.
	replaced context.Context //nolint:containedctx // it lives as long as the connection
	replace  context.CancelFunc
}

// bound ends the watch when the connection is replaced.
func (c connection) bound(events watch.Interface) watch.Interface {
	return boundWatch{events, context.AfterFunc(c.replaced, events.Stop)}
}

type boundWatch struct {
	watch.Interface

	release func() bool
}

// Stop implements watch.Interface.
func (b boundWatch) Stop() {
	b.release()
	b.Interface.Stop()
}

// Connect returns a client of the Gardener API that the kubeconfig file names. It makes no call. The wrappers, such as a circuit
// breaker, wrap its transport, except for watches: each replica has one, and it would hold a slot all the time.
func Connect(kubeconfigPath string, wrappers ...func(http.RoundTripper) http.RoundTripper) (client.WithWatch, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfigPath)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of Gardener, %s; APP_GARDENER_KUBECONFIG_PATH says where it is: %w", kubeconfigPath, err)
	}

	const burst, perSecond = 200, 100 // hundreds of operations share this client; Gardener has limits of its own

	config.QPS, config.Burst = perSecond, burst

	// Warnings are about deprecated fields; tests of package shoot check its golden files for them.
	config.WarningHandlerWithContext = rest.NoWarnings{}

	for _, wrap := range wrappers {
		config.Wrap(exceptWatches(wrap))
	}

	scheme := runtime.NewScheme()

	builder := runtime.NewSchemeBuilder(gardencorev1beta1.AddToScheme, authenticationv1alpha1.AddToScheme, corev1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the kinds of Gardener: %w", err)
	}

	api, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client for Gardener: %w", err)
	}

	return api, nil
}

// Follow returns a client that reconnects when the kubeconfig file changes: running calls end on the old connection, later calls use the
// new one, and the watch resumes there. An invalid file is ignored; at the start it is an error.
func Follow(kubeconfigPath string, files *reload.Watcher, namespace string, wrappers ...func(http.RoundTripper) http.RoundTripper) (*Client, error) {
	connections, err := reload.Load("gardener kubeconfig", func([][]byte) (connection, error) {
		// Connect reads it again, with the files that it refers to.
		api, err := Connect(kubeconfigPath, wrappers...)
		if err != nil {
			return connection{}, err
		}

		made := connection{WithWatch: api}
		made.replaced, made.replace = context.WithCancel(context.Background())

		return made, nil
	}, kubeconfigPath)
	if err != nil {
		return nil, err
	}

	var former connection

	reload.Watch(files, connections, func(taken connection) {
		if former.replace != nil {
			former.replace()
		}

		former = taken
	})

	return &Client{connection: connections.Get, namespace: namespace}, nil
}

// exceptWatches applies the wrapper to all requests except watches.
func exceptWatches(wrap func(http.RoundTripper) http.RoundTripper) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return divided{watches: next, others: wrap(next)}
	}
}

type divided struct {
	watches, others http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (d divided) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") == "true" {
		return d.watches.RoundTrip(request)
	}

	return d.others.RoundTrip(request)
}
