//go:build garden

package e2e

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/environment-broker/environment-broker/internal/logging"
	simulator "github.com/environment-broker/environment-broker/internal/simulator/agent"
	"github.com/environment-broker/environment-broker/internal/simulator/director"
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
		cluster, disconnect := f.connect(ctx, w.name)
		if cluster == nil {
			return
		}
		defer disconnect()

		if err := simulator.New(simulator.Options{
			Cluster: cluster, Connector: f.director, Every: agentPause, Log: logging.Discard(),
		}).Run(ctx); err != nil {
			f.Errorf("the agent of %s: %v", w.name, err)
		}
	})
	working.Go(func() { f.letGo(ctx, w) })

	w.dismiss = func() {
		stop()
		working.Wait()
	}
	f.Cleanup(w.dismiss)
}

// connect waits until a cluster can be reached. Without one it returns nil when the context ends.
func (f *fleet) connect(ctx context.Context, shootName string) (cluster dynamic.Interface, disconnect func()) {
	access := clusteraccess.New(gardener.New(f.garden, "garden-local"))

	for {
		config, disconnect, err := access.Connect(ctx, shootName)
		if err == nil {
			if cluster, err = dynamic.NewForConfig(config); err != nil {
				f.Error(err)
			}

			return cluster, disconnect
		}

		if rest(ctx) != nil {
			return nil, nil
		}
	}
}

// condition is what Director knows of the condition of a runtime.
func (f *fleet) condition(runtimeID string) string {
	all := f.director.Runtimes()

	found := slices.IndexFunc(all, func(each director.Runtime) bool { return each.ID == runtimeID })
	if found < 0 {
		return ""
	}

	return all[found].Condition
}
