package sandbox

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/dynamic"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakeagent"
	simulator "github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
	"github.com/environment-broker/environment-broker/provisioner/registration"
)

const (
	// agentLook is how often agents look what there is to do, and the sandbox who needs one.
	agentLook = time.Second
	// agentTerm is how long an agent works with one kubeconfig, which is good for longer.
	agentTerm = 5 * time.Minute
	// agentPause is how long an agent is gone before it comes with another kubeconfig.
	agentPause = 2 * time.Second
)

// agents have a simulated agent work in each cluster for whose runtime Director has given a token. No cluster here runs Pods.
type agents struct {
	director *simulator.Director
	clusters clusteraccess.Access
	log      logrus.FieldLogger
}

// run employs and dismisses agents until the context ends, which is no error.
func (a agents) run(ctx context.Context) error {
	var working sync.WaitGroup
	defer working.Wait()

	employed := map[string]context.CancelFunc{} // by the runtime's id

	ticker := time.NewTicker(agentLook)
	defer ticker.Stop()

	for {
		wanted := a.wanted()

		for id, dismiss := range employed {
			if _, still := wanted[id]; !still {
				dismiss()
				delete(employed, id)
			}
		}

		for id, shootName := range wanted {
			if _, already := employed[id]; already {
				continue
			}

			own, dismiss := context.WithCancel(ctx)
			employed[id] = dismiss

			working.Go(func() { a.employ(own, shootName) })
		}

		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// wanted are the clusters in which an agent is to work, by the runtime's id.
func (a agents) wanted() map[string]string {
	wanted := map[string]string{}

	for _, runtime := range a.director.Runtimes() {
		shootName, known := runtime.Labels[registration.LabelClusterName].(string)
		if known && len(runtime.OneTimeTokens) > 0 {
			wanted[runtime.ID] = shootName
		}
	}

	return wanted
}

// employ has an agent work in the cluster until the context ends.
func (a agents) employ(ctx context.Context, shootName string) {
	for ctx.Err() == nil {
		if err := a.work(ctx, shootName); err != nil && ctx.Err() == nil {
			a.log.WithError(err).WithField("shoot", shootName).Debug("the simulated agent does not get into its cluster")
		}

		select {
		case <-ctx.Done():
		case <-time.After(agentPause):
		}
	}
}

// work has an agent work in the cluster for one term.
func (a agents) work(ctx context.Context, shootName string) error {
	ctx, cancel := context.WithTimeout(ctx, agentTerm)
	defer cancel()

	config, disconnect, err := a.clusters.Connect(ctx, shootName)
	if err != nil {
		return err
	}
	defer disconnect()

	cluster, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}

	return fakeagent.New(fakeagent.Options{
		Cluster: cluster, Connector: a.director, Every: agentLook, Log: a.log.WithField("shoot", shootName),
	}).Run(ctx)
}
