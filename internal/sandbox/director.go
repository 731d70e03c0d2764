package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/atomicfile"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeagent"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/registration"
)

const (
	// agentInterval is the interval in which agents check their cluster, and the sandbox which clusters need an agent.
	agentInterval = time.Second
	// agentSession is how long an agent uses one kubeconfig, which is valid for longer.
	agentSession = 5 * time.Minute
	// agentPause is the pause before an agent requests another kubeconfig.
	agentPause = 2 * time.Second
)

// directorCredentials is the name of the file with the credentials for the fake Director.
const directorCredentials = "director-credentials.yaml"

// startDirector listens for a simulated Director on a free port of the loopback and writes its credentials. It returns the
// address and the parts to run: Director, and the agents that connect to it. The file with the credentials has the form of the Secret
// that the Provisioner reads in production. The port changes with each start, so the file is written each time.
func startDirector(ctx context.Context, config Config, api client.WithWatch, log logrus.FieldLogger,
) (address string, parts []lifecycle.Part, err error) {
	director, err := fakedirector.New(fakedirector.Options{File: filepath.Join(config.Dir, "director.json")})
	if err != nil {
		return "", nil, err
	}

	server, err := httpserver.Listen(ctx, "127.0.0.1:0", director, 0)
	if err != nil {
		return "", nil, fmt.Errorf("starting the simulated Director: %w", err)
	}

	credentials := fmt.Sprintf("data:\n  client_id: %s\n  client_secret: %s\n  tokens_endpoint: http://%s%s\n",
		fakedirector.DefaultClientID, fakedirector.DefaultClientSecret, server.Address(), fakedirector.TokenPath)

	if err := atomicfile.Write(filepath.Join(config.Dir, directorCredentials), []byte(credentials)); err != nil {
		return "", nil, errors.Join(fmt.Errorf("writing the credentials for the simulated Director: %w", err), server.Close())
	}

	clusters := clusteraccess.New(gardener.New(api, gardenlet.Namespace(fakegarden.DefaultProject)))
	simulated := agents{director: director, clusters: clusters, log: log.WithField("service", "agents")}

	return server.Address(), []lifecycle.Part{{Name: "director", Run: server.Run}, {Name: "agents", Run: simulated.run}}, nil
}

// agents runs a simulated agent in each cluster whose runtime has a token of Director. The clusters of the sandbox run no Pods, so the
// agent that Kyma would install there runs in this process, with an admin kubeconfig.
type agents struct {
	director *fakedirector.Director
	clusters clusteraccess.Access
	log      logrus.FieldLogger
}

// run starts and stops agents until the context ends, which is not an error. An agent stops when its runtime is unregistered.
// Director sends no notifications, so run polls the runtimes. It returns after all agents have ended, so none of them calls the
// garden after it has stopped.
func (a agents) run(ctx context.Context) error {
	var working sync.WaitGroup
	defer working.Wait()

	running := map[string]context.CancelFunc{} // by the ID of the runtime

	wait.UntilWithContext(ctx, func(ctx context.Context) {
		wanted := a.wanted()

		for id, stop := range running {
			if _, still := wanted[id]; !still {
				stop()
				delete(running, id)
			}
		}

		for id, shootName := range wanted {
			if _, already := running[id]; already {
				continue
			}

			own, stop := context.WithCancel(ctx)
			running[id] = stop

			working.Go(func() { a.repeat(own, shootName) })
		}
	}, agentInterval)

	return nil
}

// wanted returns the Shoots of the clusters that need an agent, by the ID of the runtime: those with a one-time token. The
// Provisioner sets the label with the name of the Shoot. A runtime that was registered by another client has no such label, and no
// agent.
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

// repeat runs an agent in the cluster, session by session, until the context ends. It tolerates a cluster that is not ready yet, and one
// that has been deleted while its runtime is still registered.
func (a agents) repeat(ctx context.Context, shootName string) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := a.session(ctx, shootName); err != nil && ctx.Err() == nil {
			a.log.WithError(err).WithField("shoot", shootName).Debug("the simulated agent cannot reach its cluster")
		}
	}, agentPause)
}

// session runs an agent in the cluster until its kubeconfig is used up. It fails if the cluster cannot be reached, as it is
// normal during the creation of a cluster. A new session has a new agent, which recognizes a spent token by the credentials that an
// earlier agent has stored in the cluster.
func (a agents) session(ctx context.Context, shootName string) error {
	ctx, cancel := context.WithTimeout(ctx, agentSession)
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
		Cluster: cluster, Connector: a.director, Every: agentInterval, Log: a.log.WithField("shoot", shootName),
	}).Run(ctx)
}
