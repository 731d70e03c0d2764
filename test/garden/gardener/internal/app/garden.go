package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sirupsen/logrus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/controlplane"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/kubeconfig"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/lock"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/port"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/project"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/runtimes"
)

// closableRuntimes are runtimes whose API servers can be ended all at once.
type closableRuntimes interface {
	gardenlet.Runtimes
	Close() error
}

// Run runs a garden until ctx ends, which is no error. When it is ready it writes one line to output, "garden ready kubeconfig=<path>".
func Run(ctx context.Context, config Config, output io.Writer, log logrus.FieldLogger) (err error) {
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of the garden: %w", err)
	}
	held, err := lock.Take(ctx, filepath.Join(config.Dir, "lock"))
	if err != nil {
		return err
	}
	defer held.Close()

	ports, err := port.Open(filepath.Join(config.Dir, "ports.json"))
	if err != nil {
		return err
	}
	log.WithField("dir", config.Dir).Info("the garden starts")
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

func (c Config) logs() string { return filepath.Join(c.Dir, "logs") }

// garden is a garden whose control plane runs.
type garden struct {
	Config

	plane *controlplane.ControlPlane
	ports *port.Book
	log   logrus.FieldLogger
}

func (g *garden) run(ctx context.Context, output io.Writer) (err error) {
	admin, err := newClient(g.plane.Kubernetes.Admin)
	if err != nil {
		return err
	}
	if err := project.Prepare(ctx, admin, g.Project); err != nil {
		return err
	}
	if err := g.writeKubeconfigs(); err != nil {
		return err
	}
	clusters, err := g.runtimes(ctx, admin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clusters.Close()) }()
	player, err := gardenlet.New(gardenlet.Options{
		Client:    admin,
		Project:   g.Project,
		Runtimes:  clusters,
		Creation:  g.Creation,
		Deletion:  g.Deletion,
		DNSDomain: fakegarden.Domain,
		Log:       g.log,
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(output, "garden ready kubeconfig=%s\n", g.Kubeconfig); err != nil {
		return fmt.Errorf("tell that the garden is ready: %w", err)
	}
	return g.play(ctx, player)
}

// play runs the gardenlet until it, the control plane or ctx ends.
func (g *garden) play(ctx context.Context, player *gardenlet.Gardenlet) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	played := make(chan error, 1)
	go func() { played <- player.Run(ctx) }()
	select {
	case err := <-played:
		return err
	case err := <-g.plane.Ended():
		cancel()
		return errors.Join(err, <-played)
	}
}

// writeKubeconfigs writes the kubeconfig that services work with, and one of the administrator beside the data.
func (g *garden) writeKubeconfigs() error {
	member := *g.plane.Kubernetes.Admin
	credentials, err := g.plane.Certificates.TLS(project.Member)
	if err != nil {
		return err
	}
	member.TLSClientConfig = credentials
	if err := kubeconfig.Write(g.Kubeconfig, &member, gardenlet.Namespace(g.Project)); err != nil {
		return err
	}
	return kubeconfig.Write(filepath.Join(g.Dir, "admin.kubeconfig"), g.plane.Kubernetes.Admin, gardenlet.Namespace(g.Project))
}

func (g *garden) runtimes(ctx context.Context, admin client.Client) (closableRuntimes, error) {
	config := runtimes.Config{
		Dir:      filepath.Join(g.Dir, "runtimes"),
		Binaries: g.Binaries,
		Logs:     g.logs(),
		EtcdURL:  g.plane.EtcdURL,
		Ports:    g.ports,
		Log:      g.log,
	}
	switch g.Runtimes {
	case RuntimesShared:
		return runtimes.NewShared(config)
	case RuntimesSimulated:
		return runtimes.NewSimulated(ctx, config, admin, g.Project)
	default:
		return runtimes.NewOwn(config), nil
	}
}
