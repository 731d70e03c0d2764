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

	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/program/atomicfile"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeagent"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/registration"
)

const (
	// agentInterval is how often an agent checks its cluster, and how often the sandbox looks for clusters that need an agent.
	agentInterval = time.Second
	// agentSession is how long an agent uses one kubeconfig. It is shorter than the validity of a kubeconfig.
	agentSession = 5 * time.Minute
	// agentPause is the pause before an agent requests another kubeconfig.
	agentPause = 2 * time.Second
)

// directorCredentials is the name of the file with the credentials for the simulated Director.
const directorCredentials = "director-credentials.yaml"

// startDirector starts a listener for a simulated Director on a free loopback port and writes the credentials file. It returns
// the Director, its address and two parts to run: the Director, and the agents that connect to it. The credentials file has the
// format of the Secret that the Provisioner reads in production. It contains the address, which changes with each start, so every
// start rewrites it.
func startDirector(ctx context.Context, config Config, api client.WithWatch, log logrus.FieldLogger,
) (director *fakedirector.Director, address string, parts []lifecycle.Part, err error) {
	director, err = fakedirector.New(fakedirector.Options{File: filepath.Join(config.Dir, "director.json")})
	if err != nil {
		return nil, "", nil, err
	}

	server, err := httpserver.Listen(ctx, "127.0.0.1:0", director, 0)
	if err != nil {
		return nil, "", nil, fmt.Errorf("starting the simulated Director: %w", err)
	}

	credentials := fmt.Sprintf("data:\n  client_id: %s\n  client_secret: %s\n  tokens_endpoint: http://%s%s\n",
		fakedirector.DefaultClientID, fakedirector.DefaultClientSecret, server.Address(), fakedirector.TokenPath)

	if err := atomicfile.Write(filepath.Join(config.Dir, directorCredentials), []byte(credentials)); err != nil {
		return nil, "", nil, errors.Join(fmt.Errorf("writing the credentials for the simulated Director: %w", err), server.Close())
	}

	clusters := clusteraccess.New(gardener.New(api, gardenlet.Namespace(fakegarden.DefaultProject)))
	simulated := agents{director: director, clusters: clusters, log: log.WithField("service", "agents")}

	return director, server.Address(), []lifecycle.Part{{Name: "director", Run: server.Run}, {Name: "agents", Run: simulated.run}}, nil
}

// agents runs a simulated runtime agent for each cluster whose runtime has a one-time token. In production, Kyma installs the
// agent in the cluster. The sandbox's clusters cannot run Pods, so the agents run in this process and connect with an admin
// kubeconfig.
type agents struct {
	director *fakedirector.Director
	clusters clusteraccess.Access
	log      logrus.FieldLogger
}

// run starts and stops agents until the context ends, which is not an error. An agent stops when its runtime is unregistered.
// Director sends no notifications, so run polls the list of runtimes. It returns after all agents have stopped, so no agent calls
// a stopped garden.
func (a agents) run(ctx context.Context) error {
	var working sync.WaitGroup
	defer working.Wait()

	running := map[string]context.CancelFunc{} // keyed by runtime ID

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

// wanted returns the names of the Shoots that need an agent, keyed by runtime ID. A runtime needs an agent if it has a one-time
// token. The Provisioner labels each runtime with its Shoot name; a runtime that another client registered has no such label and
// gets no agent.
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

// repeat runs an agent for the named Shoot's cluster, one session after another, until the context ends. It logs a failed session
// and then starts another: the cluster might not be ready yet, or may have been deleted while its runtime is still registered.
func (a agents) repeat(ctx context.Context, shootName string) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := a.session(ctx, shootName); err != nil && ctx.Err() == nil {
			a.log.WithError(err).WithField("shoot", shootName).Debug("the simulated agent cannot connect to its cluster; trying again")
		}
	}, agentPause)
}

// session requests a kubeconfig and runs an agent with it for agentSession. It fails if the cluster cannot be reached, for
// example while the cluster is being created. Each session creates a new agent. The new agent knows that a token has already been
// used if an earlier agent stored credentials for it in the cluster.
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
