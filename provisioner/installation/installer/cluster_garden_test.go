//go:build garden

package installer_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/clients/applier"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/installation/installer"
	"github.com/environment-broker/environment-broker/test/apiserver"
)

// patience is the timeout of each wait.
const patience = 4 * time.Minute

// api is the configuration of the API server that all tests share.
var api *rest.Config

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	code := apiserver.Main(m, &api)
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// release maps the sources of components to their manifests.
type release map[string]string

func (r release) Manifests(_ context.Context, source string) ([]installation.ManifestFile, error) {
	text, ok := r[source]
	if !ok {
		return nil, failure.New(failure.Permanent, "no manifests of %q", source)
	}
	return []installation.ManifestFile{{Name: source + ".yaml", Content: []byte(text)}}, nil
}

// cluster is one test's share of the API server: a runtime with its own namespaces.
type cluster struct {
	*testing.T
	client.Client

	config  *rest.Config
	runtime string
	// calls counts the write requests of the applier.
	calls *counter
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{T: t, runtime: uuid.NewString(), calls: &counter{}}
	c.config = rest.CopyConfig(api)
	c.config.QPS = -1
	c.config.Wrap(c.calls.count)
	connection, err := rest.HTTPClientFor(c.config)
	if err != nil {
		t.Fatal(err)
	}
	if c.Client, err = client.New(c.config, client.Options{HTTPClient: connection}); err != nil {
		t.Fatal(err)
	}
	stop := c.finishNamespaces()
	t.Cleanup(func() {
		_, err := c.uninstalled()
		stop()
		connection.CloseIdleConnections()
		if err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	return c
}

// finishNamespaces does the work of the namespace controller, which does not run in these tests. It finalizes deleted namespaces,
// which are empty in these tests.
func (c *cluster) finishNamespaces() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	clients, err := kubernetes.NewForConfig(rest.CopyConfig(api))
	if err != nil {
		c.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			list, err := clients.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: applier.LabelInstallation})
			if err == nil {
				for _, namespace := range list.Items {
					if namespace.DeletionTimestamp != nil {
						namespace.Spec.Finalizers = nil
						_, _ = clients.CoreV1().Namespaces().Finalize(ctx, &namespace, metav1.UpdateOptions{})
					}
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

func (c *cluster) target() installation.Target {
	return installation.Target{Cluster: c.config, RuntimeID: c.runtime}
}

func (c *cluster) applier(release release) *installer.Installer {
	return installer.New(installer.Options{Manifests: release, Now: time.Now})
}

func (c *cluster) step(release release, plan installation.Plan) (installation.Progress, error) {
	return c.applier(release).Install(c.Context(), c.target(), plan)
}

// install repeats step until the release is installed, and returns the last message.
func (c *cluster) install(release release, plan installation.Plan) string {
	c.Helper()
	progress, err := until(again(func() (installation.Progress, error) { return c.step(release, plan) }, always))
	if err != nil || !progress.Done {
		c.Fatalf("not installed: %v %+v", err, progress)
	}
	return progress.Message
}

func (c *cluster) uninstalled() (string, error) {
	progress, err := until(again(func() (installation.Progress, error) {
		return c.applier(nil).Uninstall(context.WithoutCancel(c.Context()), c.target())
	}, always))
	if err == nil && !progress.Done {
		err = fmt.Errorf("not uninstalled: %s", progress.Message)
	}
	return progress.Message, err
}

// again wraps a call for until: as long as while returns true, transient errors count as progress, so that until repeats the call
// as the engine would. Such errors occur because the API server needs a moment to serve new kinds.
func again(call func() (installation.Progress, error), while func() bool) func() (installation.Progress, error) {
	return func() (installation.Progress, error) {
		progress, err := call()
		if failure.Is(err, failure.Transient) && while() {
			return installation.Progress{Message: err.Error()}, nil
		}
		return progress, err
	}
}

func always() bool { return true }

// until repeats a call until it is done or fails.
func until(call func() (installation.Progress, error)) (installation.Progress, error) {
	deadline := time.Now().Add(patience)
	ticker := time.NewTicker(30 * time.Millisecond)
	defer ticker.Stop()
	for {
		progress, err := call()
		if err != nil || progress.Done || time.Now().After(deadline) {
			return progress, err
		}
		<-ticker.C
	}
}

func (c *cluster) object(group, version, kind, namespace, name string) *unstructured.Unstructured {
	c.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	err := c.Get(c.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.Fatal(err)
	}
	return object
}

func (c *cluster) data(namespace, name string) map[string]string {
	c.Helper()
	found := &corev1.ConfigMap{}
	err := c.Get(c.Context(), client.ObjectKey{Namespace: namespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.Fatal(err)
	}
	return found.Data
}

func plan(components ...installation.Component) installation.Plan {
	return installation.Plan{Version: "1.0.0", Components: components}
}

// part returns a component in the namespace of the test. Its source is its name.
func (c *cluster) part(name string) installation.Component {
	return installation.Component{Name: name, Source: name, Namespace: "ns-" + c.runtime[:8]}
}

func (c *cluster) namespace() string { return c.part("").Namespace }

func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  key: %q\n---\n", name, value)
}

// finalize removes the finalizer of a deleted namespace, as the namespace controller does.
func (c *cluster) finalize(name string) {
	c.Helper()
	clients, err := kubernetes.NewForConfig(rest.CopyConfig(api))
	if err != nil {
		c.Fatal(err)
	}
	namespace, err := clients.CoreV1().Namespaces().Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	namespace.Spec.Finalizers = nil
	if _, err := clients.CoreV1().Namespaces().Finalize(c.Context(), namespace, metav1.UpdateOptions{}); err != nil {
		c.Fatal(err)
	}
}
