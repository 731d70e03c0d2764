package fakegarden

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/kubeapi"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/runtimes"
)

// DefaultProject is the name of the project if Options has none. It is short, because the name of a Shoot and the name of its project
// share maxNames characters.
const DefaultProject = "local"

// user is the user of all requests: it is the creator of Shoots and the subject of admin kubeconfigs.
const user = "garden"

// Options configure a garden.
type Options struct {
	// Dir is a folder that one garden uses at a time. It is created if it is missing.
	Dir string
	// Project is the name of the only project, DefaultProject if empty. Its namespace is garden-<project>.
	Project string
	// ClusterCreation is the duration of the creation or a change of a runtime. A deletion takes half of it. With 0 an operation
	// ends at its first reconciliation.
	ClusterCreation time.Duration
	// Log gets a line for each start and end of an operation, and each failed reconciliation.
	Log logrus.FieldLogger
}

// Memory is a fake garden: objects in memory and in files, a simulated gardenlet, and the API servers of the runtimes. The folder
// of a garden has the objects of Gardener in objects, and the certificates, the address and the objects of the runtimes in
// runtimes.
type Memory struct {
	options Options
	server  *kubeapi.Server
	client  client.WithWatch
}

// Open reads a garden from its folder, or creates a new one. Its client works from now on, its runtimes and its gardenlet while
// Run runs. Shoots that were created before Run are reconciled when it starts. Open fails if a stored object cannot be decoded.
func Open(ctx context.Context, options Options) (*Memory, error) {
	if options.Dir == "" || options.Log == nil {
		return nil, errors.New("opening the garden: Dir or Log is missing")
	}
	if options.Project == "" {
		options.Project = DefaultProject
	}
	server, err := openServer(filepath.Join(options.Dir, "objects"))
	if err != nil {
		return nil, fmt.Errorf("opening the garden: %w", err)
	}
	c, _, err := server.Client()
	if err == nil {
		err = Seed(ctx, c, options.Project)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the garden: %w", err)
	}
	return &Memory{options: options, server: server, client: c}, nil
}

// openServer opens the API server of the garden. Each change passes the admission rules. Requests are not authenticated: the server
// has no listener, and only this process has a client of it.
func openServer(dir string) (*kubeapi.Server, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	types, err := newShootTypes()
	if err != nil {
		return nil, err
	}
	var server *kubeapi.Server
	server, err = kubeapi.Open(kubeapi.Options{
		Scheme: scheme, Kinds: kinds(), Dir: dir, Types: types, Admit: admit,
		Subresources: map[string]kubeapi.Subresource{
			"shoots/adminkubeconfig": func(
				ctx context.Context, key client.ObjectKey, decode func(into runtime.Object) error,
			) (runtime.Object, error) {
				request := &authenticationv1alpha1.AdminKubeconfigRequest{}
				if err := decode(request); err != nil {
					return nil, err
				}
				return request, issueAdminKubeconfig(ctx, server, key, user, request)
			},
		},
	})
	return server, err
}

// Client returns a client of the garden. It is safe for concurrent use, and works before, while and after Run runs. Its errors
// are those of Gardener's API server.
func (m *Memory) Client() client.WithWatch { return m.client }

// Counted returns another client of the garden and the counts of its calls. The calls of the gardenlet and of Client do not count, so a
// test can count those of the Provisioner alone.
func (m *Memory) Counted() (client.WithWatch, *kubeapi.Calls, error) { return m.server.Client() }

// Namespace returns the namespace of the project, which contains its Shoots.
func (m *Memory) Namespace() string { return gardenlet.Namespace(m.options.Project) }

// Run runs the gardenlet and the API servers of the runtimes until the context ends, which is not an error. If either of them
// fails, Run stops the other and returns the error. After Run has returned, nothing writes to the folder of the garden except calls
// of its clients. A garden can run once.
func (m *Memory) Run(ctx context.Context) error {
	server, err := runtimes.Listen(ctx, runtimes.Options{
		Dir:     filepath.Join(m.options.Dir, "runtimes"),
		Version: runtimes.VersionOfShoot(m.server, m.options.Project, m.options.Log),
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
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return worker.Run(ctx) })
	running.Go(func() error { return server.Serve(ctx) })
	return running.Wait()
}
