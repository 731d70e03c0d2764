//go:build garden

package deployments_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/controller/deployments"
)

// minimal is the Content of a second class: it gives each object of a bundle another annotation.
type minimal struct{ from *fixture }

func (m minimal) Load(ctx context.Context, release deployments.Release) (deployments.Loaded, error) {
	loaded, err := m.from.Load(ctx, release)
	for _, object := range loaded.Objects {
		object.SetAnnotations(map[string]string{"example.com/class": "minimal"})
	}

	return loaded, err
}

// eachClass runs a test with a running controller of each class. The Bundles have a class that the controller does not know.
func eachClass(t *testing.T, test func(t *testing.T, f *fixture)) {
	for name, second := range map[string]bool{class: false, "example-com-minimal": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.options.Class = name

			if second {
				f.options.Content = minimal{f}
			}

			f.start()
			test(t, f)
		})
	}
}

// start runs the controller in a manager until the test ends.
func (f *fixture) start() {
	f.Helper()

	skip := true

	counted := rest.CopyConfig(hub)
	counted.Wrap(f.count)

	cluster, err := ctrl.NewManager(counted, manager.Options{
		Scheme: f.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		f.Fatal(err)
	}

	f.lists = &lists{Client: cluster.GetClient()}
	f.options.Client, f.options.Reader = f.lists, cluster.GetAPIReader()
	f.options.Now = time.Now
	f.restart()

	if err := f.under.Setup(cluster); err != nil {
		f.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(f.Context()))

	var running sync.WaitGroup

	running.Go(func() {
		if err := cluster.Start(ctx); err != nil {
			f.Errorf("the manager ended: %v", err)
		}
	})
	f.Cleanup(func() { cancel(); running.Wait() })
}

// patience is how long await waits.
const patience = 4 * time.Minute

// await polls until the condition holds.
func (f *fixture) await(reason string, holds func() bool) {
	f.Helper()

	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()

	for deadline := time.Now().Add(patience); !holds(); <-ticker.C {
		if time.Now().After(deadline) {
			f.Fatalf("%s: %+v, %d Bundles", reason, f.deployment().Status, len(f.bundles()))
		}
	}
}

// bundleOf returns the Bundle with the given source.
func (f *fixture) bundleOf(source v1alpha1.BundleSource) *v1alpha1.Bundle {
	f.Helper()

	for _, bundle := range f.bundles() {
		if bundle.Spec.Source.HTTP.URL == source.HTTP.URL && bundle.DeletionTimestamp == nil {
			return &bundle
		}
	}

	return nil
}

// awaitBundle waits for the Bundle with the given source, and returns its name.
func (f *fixture) awaitBundle(source v1alpha1.BundleSource) string {
	f.Helper()
	f.await("there is no Bundle with the source", func() bool { return f.bundleOf(source) != nil })

	return f.bundleOf(source).Name
}

// awaitActive waits until a Bundle is active.
func (f *fixture) awaitActive(name string) {
	f.Helper()
	f.await("the Bundle "+name+" is not active", func() bool { return f.deployment().Status.ActiveBundle == name })
}

var _ deployments.Content = minimal{}
