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

// agentInterval is the agent's polling interval. It is short, so that the agent has connected before the Provisioner first
// checks the connection.
const agentInterval = time.Second

// runAgent runs an agent and a service catalog in the cluster of a scenario until s.stopAgent is called.
func (f *fleet) runAgent(s *scenario) {
	ctx, stop := context.WithCancel(context.Background())

	var working sync.WaitGroup

	working.Go(func() {
		cluster, err := s.cluster(ctx)
		if err != nil {
			return // the cluster was removed before it was ready, or the scenario itself reports the error
		}

		working.Go(func() { releaseExternalService(ctx, s, cluster) })

		if err := simulator.New(simulator.Options{
			Cluster: cluster, Connector: f.director, Every: agentInterval, Log: logging.Discard(),
		}).Run(ctx); err != nil {
			f.Errorf("the agent of %s: %v", s.name, err)
		}
	})

	s.stopAgent = func() {
		stop()
		working.Wait()
	}
	f.Cleanup(s.stopAgent)
}

// clusterConnector returns a function that waits for a cluster and returns its client. Later calls return the same client,
// because Gardener issues only about five kubeconfigs per second.
func (f *fleet) clusterConnector(shootName string) func(ctx context.Context) (dynamic.Interface, error) {
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

		err := retry(ctx, func() (again bool, err error) {
			shoot := &gardencorev1beta1.Shoot{}
			if err := f.garden.Get(ctx, client.ObjectKey{Namespace: f.garden.Namespace(), Name: shootName}, shoot); err != nil {
				return true, err
			}

			if len(shoot.Status.AdvertisedAddresses) == 0 {
				return true, errors.New("the cluster has no address yet")
			}

			config, disconnect, err := clusteraccess.New(gardener.New(f.garden, f.garden.Namespace())).Connect(ctx, shootName)
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

// directorCondition returns the condition of a runtime in Director, or "" if Director has no such runtime.
func (f *fleet) directorCondition(runtimeID string) string {
	all := f.director.Runtimes()

	found := slices.IndexFunc(all, func(each fakedirector.Runtime) bool { return each.ID == runtimeID })
	if found < 0 {
		return ""
	}

	return all[found].Condition
}
