package sandbox

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/sirupsen/logrus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/program/atomicfile"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeavs"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecis"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecleanup"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecontrolplane"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeedp"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeias"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakenotification"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakereconciler"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

// outside contains the addresses of the simulated systems. If an address is empty, the services do not use the system.
type outside struct {
	director string
	// simulators is the address that serves the systems that the broker calls, and the page that shows them.
	simulators string
}

// startSimulators starts a listener on a free loopback port. It serves the simulated systems that the broker calls, and a page
// that shows them together with the systems in others. The systems keep their objects in memory. After a restart of the sandbox,
// the broker therefore does not find the objects that it has recorded, and considers them removed.
func startSimulators(ctx context.Context, others ...simulator.System) (address string, part lifecycle.Part, err error) {
	server, err := httpserver.Listen(ctx, "127.0.0.1:0", simulator.NewHandler(append([]simulator.System{
		fakeavs.New(), fakecis.New(), fakeedp.New(), fakeias.New(), fakenotification.New(), fakereconciler.New(), fakecleanup.New(),
		fakecontrolplane.New(),
	}, others...)...), 0)
	if err != nil {
		return "", lifecycle.Part{}, fmt.Errorf("starting the simulated systems: %w", err)
	}

	return server.Address(), lifecycle.Part{Name: "simulators", Run: server.Run}, nil
}

// startSystems starts the simulated systems that the configuration enables. The caller must run the returned parts even if
// startSystems fails, because they release the resources of the systems that have been started.
func startSystems(ctx context.Context, config Config, garden client.WithWatch, log logrus.FieldLogger) (systems outside, parts []lifecycle.Part, err error) {
	var others []simulator.System

	if config.Director {
		var director *fakedirector.Director

		director, systems.director, parts, err = startDirector(ctx, config, garden, log)
		if err != nil {
			return systems, parts, err
		}

		others = append(others, director)
	}

	if config.Integrations {
		var part lifecycle.Part
		if systems.simulators, part, err = startSimulators(ctx, others...); err != nil {
			return systems, parts, err
		}

		parts = append(parts, part)
	}

	return systems, parts, nil
}

// configure connects the broker to the simulated systems. Files that the broker reads are written to dir.
func (o outside) configure(config *broker.Config, dir string) error {
	if o.simulators == "" {
		return nil
	}

	address := "http://" + o.simulators + "/edp"
	config.EDP.AuthURL, config.EDP.AdminURL = address, address
	config.EDP.Namespace, config.EDP.Secret = fakeedp.Namespace, fakeedp.Secret
	config.IAS.URL, config.IAS.UserID, config.IAS.UserSecret = "http://"+o.simulators+"/ias", fakeias.User, fakeias.Secret

	config.Notification = fakenotification.Config("http://" + o.simulators + "/notification")
	config.AvS = fakeavs.Config("http://" + o.simulators + "/avs")
	config.AvS.Tags.Enabled = true
	config.CIS = fakecis.Config("http://" + o.simulators + "/cis")
	config.AccountPool.Cleanup = fakecleanup.Config("http://" + o.simulators + "/cleanup")
	config.Gardener.ShootDomain = "example.com"

	switch config.Kyma.Installer {
	case environment.InstallerProvisioner: // the sandbox always runs the Provisioner
	case environment.InstallerReconciler:
		config.Reconciler.URL = "http://" + o.simulators + "/reconciler"
	case environment.InstallerLifecycleManager:
		return o.useLifecycleManager(config, dir)
	}

	return nil
}

// useLifecycleManager configures the broker to install Kyma with the simulated Lifecycle Manager. It writes the kubeconfig for
// the simulated control plane to dir.
func (o outside) useLifecycleManager(config *broker.Config, dir string) error {
	config.LifecycleManager.Enabled = true
	config.Kyma.Installer, config.Kyma.Version, config.Kyma.OnDemandVersion = environment.InstallerProvisioner, "", false
	config.Kyma.KubeconfigPath = filepath.Join(dir, "control-plane.kubeconfig")

	err := atomicfile.Write(config.Kyma.KubeconfigPath, fakecontrolplane.Kubeconfig("http://"+o.simulators+"/control-plane"))

	return failure.While(err, "writing the kubeconfig of the simulated control plane")
}
