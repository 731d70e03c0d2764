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

// agentPause is the agent's interval, short enough that the agent has connected at the Provisioner's first check.
const agentPause = time.Second

// runAgent runs an agent and a service catalog in the cluster of a scenario until w.stopAgent is called.
func (f *fleet) runAgent(w *scenario) {
	ctx, stop := context.WithCancel(context.Background())

	var working sync.WaitGroup

	working.Go(func() {
		cluster, err := w.cluster(ctx)
		if err != nil {
			return // the cluster was removed before it was ready, or its user reports the error
		}

		working.Go(func() { release(ctx, w, cluster) })

		if err := simulator.New(simulator.Options{
			Cluster: cluster, Connector: f.director, Every: agentPause, Log: logging.Discard(),
		}).Run(ctx); err != nil {
			f.Errorf("the agent of %s: %v", w.name, err)
		}
	})

	w.stopAgent = func() {
		stop()
		working.Wait()
	}
	f.Cleanup(w.stopAgent)
}

// connect returns a function that waits for a cluster and connects to it once, because Gardener issues only about five kubeconfigs a
// second.
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
				return true, errors.New("the cluster has no address yet")
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

// condition returns the condition of a runtime in Director.
func (f *fleet) condition(runtimeID string) string {
	all := f.director.Runtimes()

	found := slices.IndexFunc(all, func(each fakedirector.Runtime) bool { return each.ID == runtimeID })
	if found < 0 {
		return ""
	}

	return all[found].Condition
}
