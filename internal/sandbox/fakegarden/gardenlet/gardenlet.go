package gardenlet

import (
	"context"
	"crypto/rsa"
	"errors"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
)

// Runtimes starts and stops the API servers that play the runtime clusters. Calls for different runtimes come concurrently, calls
// for the same one do not.
type Runtimes interface {
	// Start makes the API server of a runtime answer and returns where. It is idempotent: a runtime that runs is returned as it is.
	// clientCA (PEM) signs the client certificates that the runtime has to accept.
	Start(ctx context.Context, technicalID string, clientCA []byte) (Endpoint, error)
	// Stop ends the API server of a runtime and forgets what it stored. It is idempotent: an unknown runtime is no error.
	Stop(ctx context.Context, technicalID string) error
}

// Endpoint is where the API server of a runtime answers.
type Endpoint struct {
	URL string
	// CA is the certificate authority (PEM) of the serving certificate.
	CA []byte
}

// Options says what a gardenlet works on.
type Options struct {
	Client client.WithWatch
	// Project is the name of the project, whose Shoots are in Namespace(Project).
	Project  string
	Runtimes Runtimes
	// Creation is how long the creation or a change of a Shoot takes, Deletion how long its deletion takes. Kubernetes keeps times
	// in whole seconds, so an operation may end up to a second early.
	Creation time.Duration
	Deletion time.Duration
	// SeedName is the Seed to which Shoots are bound; empty: they are not bound.
	SeedName string
	// DNSDomain completes the domain of a Shoot, <shoot>.<project>.<DNSDomain>, where the API server does not do it at the binding;
	// empty: it does.
	DNSDomain string
	Log       logrus.FieldLogger
}

// Gardenlet works on the Shoots of one project while Run runs.
type Gardenlet struct {
	client    client.WithWatch
	namespace string
	project   string
	runtimes  Runtimes
	creation  time.Duration
	deletion  time.Duration
	seedName  string
	dnsDomain string
	log       logrus.FieldLogger
	// authorityKey is shared by the client authorities of all runtimes, because keys are expensive to make.
	authorityKey func() (*rsa.PrivateKey, error)
}

// New returns a gardenlet; it does nothing before Run.
func New(options Options) (*Gardenlet, error) {
	switch {
	case options.Client == nil:
		return nil, errors.New("gardenlet: Client is missing")
	case options.Project == "":
		return nil, errors.New("gardenlet: Project is missing")
	case options.Runtimes == nil:
		return nil, errors.New("gardenlet: Runtimes is missing")
	case options.Log == nil:
		return nil, errors.New("gardenlet: Log is missing")
	case options.Creation < 0 || options.Deletion < 0:
		return nil, errors.New("gardenlet: Creation or Deletion is negative")
	}
	return &Gardenlet{
		client:       options.Client,
		namespace:    Namespace(options.Project),
		project:      options.Project,
		runtimes:     options.Runtimes,
		creation:     options.Creation,
		deletion:     options.Deletion,
		seedName:     options.SeedName,
		dnsDomain:    options.DNSDomain,
		log:          options.Log,
		authorityKey: sync.OnceValues(certificate.NewKey),
	}, nil
}

// Namespace is the namespace of the Shoots of a project, by the convention of Gardener.
func Namespace(project string) string { return "garden-" + project }

// TechnicalID is the name that a Shoot of a project has among the Runtimes, as in Gardener.
func TechnicalID(project, shoot string) string {
	return "shoot--" + project + "--" + shoot
}
