package localgarden

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/apiserver"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/clusters"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/controlplane"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/process"
)

// closableRuntimes provides the gardenlet with the API servers of runtimes. Close stops these servers but does not delete their
// objects.
type closableRuntimes interface {
	gardenlet.Runtimes
	Close() error
}

// Run runs a garden until the context ends, which is not an error. When the garden is ready, Run writes "garden ready
// kubeconfig=<path>" to output. It returns an error if a server of the control plane exits or if another garden uses the folder.
//
// The parts are stopped in the reverse order of their start: gardenlet, runtimes, control plane.
func Run(ctx context.Context, config Config, output io.Writer, log logrus.FieldLogger) (err error) {
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return fmt.Errorf("creating the folder of the garden: %w", err)
	}
	lock, err := process.Lock(ctx, filepath.Join(config.Dir, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close()

	ports, err := process.OpenPorts(filepath.Join(config.Dir, "ports.json"))
	if err != nil {
		return err
	}
	log.WithField("dir", config.Dir).Info("the garden is starting")
	plane, err := controlplane.Start(ctx, controlplane.Config{
		Dir: config.Dir, Binaries: config.Binaries, Logs: config.logs(), Ports: ports,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop(context.WithoutCancel(ctx))) }()

	garden := &garden{Config: config, plane: plane, ports: ports, log: log}
	return garden.run(ctx, output)
}

// logs returns the folder for the logs of all servers, including the API servers of runtimes.
func (c Config) logs() string { return filepath.Join(c.Dir, "logs") }

// garden is a garden whose control plane is running.
type garden struct {
	Config

	plane *controlplane.ControlPlane
	ports *process.Ports
	log   logrus.FieldLogger
}

// run prepares the projects, writes the kubeconfigs, reports that the garden is ready, and runs the gardenlets.
func (g *garden) run(ctx context.Context, output io.Writer) (err error) {
	admin, err := newClient(g.plane.Kubernetes.Admin)
	if err != nil {
		return err
	}
	if err := prepareProjects(ctx, admin, g.Projects); err != nil {
		return err
	}
	if err := g.writeKubeconfigs(); err != nil {
		return err
	}
	servers, err := g.runtimes(ctx, admin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	gardenlets := make([]*gardenlet.Gardenlet, len(g.Projects))
	for i, project := range g.Projects {
		if gardenlets[i], err = gardenlet.New(gardenlet.Options{
			Client:    admin,
			Project:   project,
			Runtimes:  servers,
			Creation:  g.Creation,
			Deletion:  g.Deletion,
			DNSDomain: fakegarden.Domain,
			Log:       g.log.WithField("project", project),
		}); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(output, "garden ready kubeconfig=%s\n", g.Kubeconfig); err != nil {
		return fmt.Errorf("reporting that the garden is ready: %w", err)
	}
	return g.runGardenlets(ctx, gardenlets)
}

// runGardenlets runs the gardenlets until one of them fails, a server of the control plane exits, or the context ends. It returns
// after all gardenlets have stopped, so that no runtime is started while the garden stops.
func (g *garden) runGardenlets(ctx context.Context, gardenlets []*gardenlet.Gardenlet) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, each := range gardenlets {
		group.Go(func() error { return each.Run(ctx) })
	}
	group.Go(func() error {
		select {
		case err := <-g.plane.Ended():
			return err
		case <-ctx.Done():
			return nil
		}
	})
	return group.Wait()
}

// writeKubeconfigs writes the kubeconfigs of the services and the administrator, with the namespace of the first project. Each start issues new certificates. Certificates
// from earlier starts remain valid, because the CA is the same.
func (g *garden) writeKubeconfigs() error {
	config := *g.plane.Kubernetes.Admin
	credentials, err := g.plane.Certificates.TLS(member)
	if err != nil {
		return err
	}
	config.TLSClientConfig = credentials
	if err := apiserver.WriteKubeconfig(g.Kubeconfig, &config, gardenlet.Namespace(g.Projects[0])); err != nil {
		return err
	}
	return apiserver.WriteKubeconfig(filepath.Join(g.Dir, "admin.kubeconfig"), g.plane.Kubernetes.Admin, gardenlet.Namespace(g.Projects[0]))
}

// runtimes returns the API servers of runtimes in the configured mode. No runtime is running yet: the gardenlet starts them for
// its Shoots.
func (g *garden) runtimes(ctx context.Context, admin client.Client) (closableRuntimes, error) {
	config := clusters.Config{
		Dir:      filepath.Join(g.Dir, "runtimes"),
		Binaries: g.Binaries,
		Logs:     g.logs(),
		EtcdURL:  g.plane.EtcdURL,
		Ports:    g.ports,
		Log:      g.log,
	}
	switch g.Runtimes {
	case RuntimesShared:
		return clusters.NewShared(config)
	case RuntimesSimulated:
		return clusters.NewSimulated(ctx, config, admin)
	default:
		return clusters.NewOwn(config), nil
	}
}

// newClient returns a client for Gardener's kinds, the core kinds that the services use, and RBAC, which only the garden uses.
func newClient(config *rest.Config) (client.WithWatch, error) {
	scheme, err := fakegarden.NewScheme()
	if err != nil {
		return nil, err
	}
	if err := rbacv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering RBAC: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("creating the client of the garden: %w", err)
	}
	return c, nil
}
