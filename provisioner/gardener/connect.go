package gardener

import (
	"context"
	"fmt"
	"net/http"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/reload"
)

// connection is a connection to Gardener with the credentials of one version of the kubeconfig.
type connection struct {
	client.WithWatch

	// replaced is done when another connection replaces this one. Watches then stop and restart on the new connection.
	replaced context.Context //nolint:containedctx // It lives as long as the connection.
	replace  context.CancelFunc
}

// bound returns a watch that stops when the connection is replaced.
func (c connection) bound(events watch.Interface) watch.Interface {
	return boundWatch{events, context.AfterFunc(c.replaced, events.Stop)}
}

// boundWatch is a watch, together with the function that unregisters it from its connection.
type boundWatch struct {
	watch.Interface

	release func() bool
}

// Stop implements watch.Interface.
func (b boundWatch) Stop() {
	b.release()
	b.Interface.Stop()
}

// Connect returns a client for Gardener's API that uses the credentials in the kubeconfig file. It does not connect to Gardener
// yet. The wrappers, such as a circuit breaker, wrap the transport of all requests except watches: a watch would permanently
// occupy a slot of the concurrency limit.
func Connect(kubeconfigPath string, wrappers ...func(http.RoundTripper) http.RoundTripper) (client.WithWatch, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfigPath)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of Gardener from %s, the value of APP_GARDENER_KUBECONFIG_PATH: %w", kubeconfigPath, err)
	}

	const burst, perSecond = 200, 100 // Hundreds of operations share this client. Gardener has its own limits.

	config.QPS, config.Burst = perSecond, burst

	// Suppress warnings of the API server. They are about deprecated fields, and the tests of package shoot find those in the golden files.
	config.WarningHandlerWithContext = rest.NoWarnings{}

	for _, wrap := range wrappers {
		config.Wrap(exceptWatches(wrap))
	}

	scheme := runtime.NewScheme()

	builder := runtime.NewSchemeBuilder(gardencorev1beta1.AddToScheme, authenticationv1alpha1.AddToScheme, securityv1alpha1.AddToScheme, corev1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the kinds of Gardener: %w", err)
	}

	api, err := client.NewWithWatch(config, client.Options{Scheme: scheme})

	return api, failure.While(err, "creating a client of Gardener")
}

// Follow returns a client that uses a new connection after each change of the kubeconfig file. Calls in progress finish on the
// old connection and the watch moves to the new one, so operators can renew the credentials without a restart. If the file
// becomes invalid, the client continues with the old connection, and the Watcher reports the error in its log and metric. Follow
// fails if the file is invalid at the start.
func Follow(kubeconfigPath string, files *reload.Watcher, namespace string, wrappers ...func(http.RoundTripper) http.RoundTripper) (*Client, error) {
	connections, err := reload.Load("gardener kubeconfig", func([][]byte) (connection, error) {
		// Connect reads the kubeconfig and the files to which it refers.
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

	// No lock protects former: the watcher calls this function from a single goroutine.
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

// divided is a transport that sends watches and all other requests through two separate transports.
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
