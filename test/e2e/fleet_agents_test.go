//go:build garden

package e2e

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/logging"
	simulator "github.com/environment-broker/environment-broker/internal/sandbox/fakeagent"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
)

// agentPause is how often an agent looks: often enough to be connected when the Provisioner looks first.
const agentPause = time.Second

// employ has an agent and a service catalog work in the cluster of a walk, from when that is there until they are dismissed.
func (f *fleet) employ(w *walk) {
	ctx, stop := context.WithCancel(context.Background())

	var working sync.WaitGroup

	working.Go(func() {
		cluster, err := w.cluster(ctx)
		if err != nil {
			return // it went before it was there, or whoever needs it tells
		}

		working.Go(func() { letGo(ctx, w, cluster) })

		if err := simulator.New(simulator.Options{
			Cluster: cluster, Connector: f.director, Every: agentPause, Log: logging.Discard(),
		}).Run(ctx); err != nil {
			f.Errorf("the agent of %s: %v", w.name, err)
		}
	})

	w.dismiss = func() {
		stop()
		working.Wait()
	}
	f.Cleanup(w.dismiss)
}

// connect returns what waits until a cluster is there and opens it, once for all: Gardener makes some five kubeconfigs a second.
func (f *fleet) connect(shootName string) func(ctx context.Context) (dynamic.Interface, error) {
	var (
		mutex   sync.Mutex
		cluster dynamic.Interface
	)

	return func(ctx context.Context) (dynamic.Interface, error) {
		mutex.Lock()
		defer mutex.Unlock()

		if cluster != nil {
			return cluster, nil
		}

		err := persist(ctx, func() (again bool, err error) {
			shoot := &gardencorev1beta1.Shoot{}
			if err := f.garden.Get(ctx, client.ObjectKey{Namespace: "garden-local", Name: shootName}, shoot); err != nil {
				return true, err
			}

			if len(shoot.Status.AdvertisedAddresses) == 0 {
				return true, errors.New("it has no address yet")
			}

			config, disconnect, err := clusteraccess.New(gardener.New(f.garden, "garden-local")).Connect(ctx, shootName)
			if err != nil {
				return true, err
			}

			f.Cleanup(disconnect)

			opened, err := dynamic.NewForConfig(config)
			if err == nil {
				cluster = opened
			}

			return false, err
		})

		return cluster, err
	}
}

// condition is what Director knows of the condition of a runtime.
func (f *fleet) condition(runtimeID string) string {
	all := f.director.Runtimes()

	found := slices.IndexFunc(all, func(each fakedirector.Runtime) bool { return each.ID == runtimeID })
	if found < 0 {
		return ""
	}

	return all[found].Condition
}
