package e2e

import (
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

func TestMain(m *testing.M) { postgrestest.Main(runner{m}) }

// runner runs the tests of the package, and then the functions in atEnd.
type runner struct{ *testing.M }

// atEnd contains functions that stop programs that several tests have shared.
var atEnd []func()

func (r runner) Run() int {
	code := r.M.Run()

	for _, stop := range atEnd {
		stop()
	}

	return code
}

// project is a project of a garden, with a client for the garden. It implements harness.Garden.
type project struct {
	client.WithWatch

	name string
}

func (p project) Client() client.WithWatch { return p.WithWatch }
func (p project) Project() string          { return p.name }
func (p project) Namespace() string        { return gardenlet.Namespace(p.name) }

// projectOf returns the project of a fake garden.
func projectOf(memory *fakegarden.Memory) project { return project{memory.Client(), memory.Project()} }

// platform is a client of a broker. It orders instances through the Open Service Broker API, and calls the operator API.
type platform struct{ harness.Client }

func newPlatform(tb testing.TB, url string) platform {
	tb.Helper()

	return platform{harness.Client{
		TB: tb, Endpoint: harness.Endpoint{URL: url, User: harness.User, Password: harness.Password},
	}}
}

// env is an environment and a client for its broker.
type env struct {
	platform

	services *harness.Environment
}

// start runs an environment until the test ends. creation is the time that the garden takes to create a cluster.
func start(t *testing.T, database harness.Database, creation time.Duration, configure ...func(*broker.Config, *provisioner.Config)) env {
	t.Helper()

	e := prepare(t, database, creation, configure...)
	e.startBroker()

	return *e
}

// prepare is like start, but does not start the broker.
func prepare(t *testing.T, database harness.Database, creation time.Duration, configure ...func(*broker.Config, *provisioner.Config)) *env {
	t.Helper()

	return &env{platform: newPlatform(t, ""), services: harness.Prepare(t, harness.Options{
		Database: database, ClusterCreation: creation, Configure: func(broker *broker.Config, provisioner *provisioner.Config) {
			for _, apply := range configure {
				apply(broker, provisioner)
			}
		},
	})}
}

func (e *env) startBroker() {
	e.Helper()
	e.services.StartBroker()
	e.URL = e.services.Broker.URL
}

// in returns a copy of the environment whose client reports failures to the subtest t.
func (e env) in(t *testing.T) env {
	t.Helper()

	return env{platform: newPlatform(t, e.URL), services: e.services}
}

func (e env) shoots() []gardencorev1beta1.Shoot {
	e.Helper()

	return e.services.Shoots()
}
