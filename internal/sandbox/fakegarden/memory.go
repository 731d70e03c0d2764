package fakegarden

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/admission"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/runtimes"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/scheme"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/seed"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/store"
)

// DefaultProject is the project of a garden that is not told another name.
const DefaultProject = "local"

// Options say where a garden is kept and how fast it is.
type Options struct {
	// Dir is a folder that belongs to one garden at a time. It is made if it is missing.
	Dir string
	// Project is the name of the only project, DefaultProject if empty. Its namespace is garden-<project>.
	Project string
	// ClusterCreation is how long a runtime takes to be created or changed; its deletion takes half as long.
	ClusterCreation time.Duration
	Log             logrus.FieldLogger
}

// Memory is a garden in memory.
type Memory struct {
	options Options
	client  client.WithWatch
}

// Open takes up a garden from its folder, or lays out a new one. Its client works from now on; runtimes come up while Run runs.
func Open(ctx context.Context, options Options) (*Memory, error) {
	if options.Dir == "" || options.Log == nil {
		return nil, errors.New("open the garden: Dir or Log is missing")
	}
	if options.Project == "" {
		options.Project = DefaultProject
	}
	scheme, err := scheme.New()
	if err != nil {
		return nil, fmt.Errorf("open the garden: %w", err)
	}
	objects, err := store.Open(store.Options{
		Scheme: scheme,
		Dir:    filepath.Join(options.Dir, "objects"),
		Rules:  func(objects store.Reader) store.Rules { return admission.New(objects) },
	})
	if err != nil {
		return nil, fmt.Errorf("open the garden: %w", err)
	}
	memory := &Memory{options: options, client: newClient(scheme, objects)}
	if err := seed.Apply(ctx, memory.client, options.Project); err != nil {
		return nil, fmt.Errorf("lay out the garden: %w", err)
	}
	return memory, nil
}

// Client returns a client of the garden, for as many users as there are.
func (m *Memory) Client() client.WithWatch { return m.client }

// Namespace returns the namespace of the project, in which its Shoots live.
func (m *Memory) Namespace() string { return seed.Namespace(m.options.Project) }

// Run brings runtimes up, keeps them and takes them down until the context ends, which is no error.
func (m *Memory) Run(ctx context.Context) error {
	server, err := runtimes.Listen(ctx, runtimes.Options{
		Dir:     filepath.Join(m.options.Dir, "runtimes"),
		Version: runtimes.VersionOfShoot(m.client, m.options.Project, m.options.Log),
		Log:     m.options.Log,
	})
	if err != nil {
		return fmt.Errorf("run the garden: %w", err)
	}
	worker, err := gardenlet.New(gardenlet.Options{
		Client:    m.client,
		Namespace: m.Namespace(),
		Project:   m.options.Project,
		Runtimes:  server,
		Creation:  m.options.ClusterCreation,
		Deletion:  m.options.ClusterCreation / 2,
		DNSDomain: seed.Domain,
		Log:       m.options.Log,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("run the garden: %w", err), server.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var working sync.WaitGroup
	var workerErr error
	working.Go(func() {
		defer cancel()
		workerErr = worker.Run(ctx)
	})
	serverErr := server.Serve(ctx)
	cancel()
	working.Wait()
	return errors.Join(workerErr, serverErr)
}
