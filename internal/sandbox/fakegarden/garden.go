package fakegarden

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/kubeapi"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/runtimes"
)

// DefaultProject is the name of the project if Options.Project is empty. It is short, because the project's and the Shoot's name
// together may have at most maxNames characters.
const DefaultProject = "local"

// user is the name of the user who sends all requests. Shoots name it as their creator, and admin kubeconfigs as their subject.
const user = "garden"

// Options configures a garden.
type Options struct {
	// Dir is a folder that only one garden may use at a time. Open creates a missing folder.
	Dir string
	// Project is the name of the only project. The default is DefaultProject. The project's namespace is garden-<project>.
	Project string
	// ClusterCreation is how long the creation or a change of a runtime takes. A deletion takes half as long. If it is 0, an
	// operation ends with its first reconciliation.
	ClusterCreation time.Duration
	// Log receives the start and end of each operation, and each failed reconciliation.
	Log logrus.FieldLogger
}

// Memory is a fake garden: objects in memory and in files, a simulated gardenlet, and the API servers of the runtimes. In the
// garden's folder, the subfolder objects contains the Gardener objects; the subfolder runtimes contains the certificates, the
// address and the objects of the runtimes.
type Memory struct {
	options Options
	server  *kubeapi.Server
	client  client.WithWatch
}

// Open loads a garden from its folder, or creates a new one. The client works immediately, but the runtimes and the gardenlet
// work only while Run is running. Shoots that were created earlier are reconciled when Run starts. Open fails if it cannot decode
// a stored object.
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

// openServer opens the API server of the garden. Each change passes the admission rules. Requests need no authentication: the
// server has no listener, so only this process can call it.
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
		Scheme: scheme, Kinds: kinds(), Dir: dir, Types: types, Admit: admit, Defers: confines,
		Subresources: map[string]kubeapi.Subresource{
			"shoots/adminkubeconfig": kubeapi.Completing(
				func(ctx context.Context, key client.ObjectKey, request *authenticationv1alpha1.AdminKubeconfigRequest) error {
					return issueAdminKubeconfig(ctx, server, key, user, request)
				}),
		},
	})
	return server, err
}

// Client returns a client for the garden. It is safe for concurrent use and works before, during and after Run. It returns the
// same errors as a client of Gardener's API server.
func (m *Memory) Client() client.WithWatch { return m.client }

// Handler returns the API server of the garden, for services in other processes. It accepts every request without authentication,
// so only a test may serve it.
func (m *Memory) Handler() http.Handler { return m.server }

// Config returns a configuration with which services in this process can create their own clients.
func (m *Memory) Config() *rest.Config { return m.server.Config() }

// Counted returns another client for the garden, and the counts of this client's calls. Calls by the gardenlet and other clients
// are not counted, so a test can count the Provisioner's calls alone.
func (m *Memory) Counted() (client.WithWatch, *kubeapi.Calls, error) { return m.server.Client() }

// Namespace returns the namespace of the project, which contains its Shoots.
func (m *Memory) Namespace() string { return gardenlet.Namespace(m.options.Project) }

// Project returns the name of the project.
func (m *Memory) Project() string { return m.options.Project }

// Run runs the gardenlet and the API servers of the runtimes until the context ends, which is not an error. If one of them fails,
// Run stops the other and returns the error. After Run has returned, only the garden's clients write to its folder. Run must not
// be called twice.
func (m *Memory) Run(ctx context.Context) error {
	server, err := runtimes.Listen(ctx, runtimes.Options{
		Dir:     filepath.Join(m.options.Dir, "runtimes"),
		Version: runtimes.VersionOfShoot(m.server, m.options.Log),
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
