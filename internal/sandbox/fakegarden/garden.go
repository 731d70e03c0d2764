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

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/runtimes"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/store"
)

// DefaultProject is the name of the project if Options has none.
const DefaultProject = "local"

// Options configure a garden.
type Options struct {
	// Dir is a folder that one garden uses at a time. It is created if it is missing.
	Dir string
	// Project is the name of the only project, DefaultProject if empty. Its namespace is garden-<project>.
	Project string
	// ClusterCreation is the duration of the creation or a change of a runtime. A deletion takes half of it.
	ClusterCreation time.Duration
	Log             logrus.FieldLogger
}

// Memory is a fake garden: objects in memory and in files, a simulated gardenlet, and the API servers of the runtimes.
type Memory struct {
	options Options
	client  client.WithWatch
}

// Open reads a garden from its folder, or creates a new one. Its client works from now on, its runtimes and its gardenlet while Run runs.
// Shoots that were created before Run are reconciled when it starts. Open fails if a stored object cannot be decoded.
func Open(ctx context.Context, options Options) (*Memory, error) {
	if options.Dir == "" || options.Log == nil {
		return nil, errors.New("opening the garden: Dir or Log is missing")
	}
	if options.Project == "" {
		options.Project = DefaultProject
	}
	c, err := openClient(filepath.Join(options.Dir, "objects"))
	if err == nil {
		err = Seed(ctx, c, options.Project)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the garden: %w", err)
	}
	return &Memory{options: options, client: c}, nil
}

// openClient opens the store of the garden's objects and returns a client of it. Each change passes the admission rules.
func openClient(dir string) (client.WithWatch, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	types, err := newShootTypes()
	if err != nil {
		return nil, err
	}
	objects, err := store.Open(store.Options{
		Scheme: scheme, Dir: dir, Types: types,
		Rules: func(objects store.Reader) store.Rules { return admission{objects} },
	})
	if err != nil {
		return nil, err
	}
	return newClient(scheme, objects), nil
}

// Client returns a client of the garden. It is safe for concurrent use.
func (m *Memory) Client() client.WithWatch { return m.client }

// Namespace returns the namespace of the project, which contains its Shoots.
func (m *Memory) Namespace() string { return gardenlet.Namespace(m.options.Project) }

// Run runs the gardenlet and the API servers of the runtimes until the context ends, which is not an error. If either of them fails, Run
// stops the other and returns the error.
func (m *Memory) Run(ctx context.Context) error {
	server, err := runtimes.Listen(ctx, runtimes.Options{
		Dir:     filepath.Join(m.options.Dir, "runtimes"),
		Version: runtimes.VersionOfShoot(m.client, m.options.Project, m.options.Log),
		Log:     m.options.Log,
	})
	if err != nil {
		return fmt.Errorf("running the garden: %w", err)
	}
	worker, err := gardenlet.New(gardenlet.Options{
		Client:    m.client,
		Project:   m.options.Project,
		Runtimes:  server,
		Creation:  m.options.ClusterCreation,
		Deletion:  m.options.ClusterCreation / 2,
		DNSDomain: Domain,
		Log:       m.options.Log,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("running the garden: %w", err), server.Close())
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
