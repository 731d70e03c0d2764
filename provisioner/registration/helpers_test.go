package registration_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	simulator "github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/provisioner/director"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.MainWithoutLeaks(m) }

const tenant = "tenant-1"

// fixture is an orders.Service that registers its runtimes in a fake Director.
type fixture struct {
	*testing.T

	director  *simulator.Director
	client    *director.Client
	service   *orders.Service
	registrar *registration.Registrar
	caretaker registration.Caretaker
	clock     *clocktesting.FakeClock
	db        *storage.DB
	rows      *runtimes.Store

	refused error // the result of the service's Check
	// cluster is the ID of the only runtime that has a Shoot.
	cluster string
}

func (f *fixture) ofRuntime(_ context.Context, runtimeID string) (string, error) {
	if runtimeID == f.cluster {
		return "c-1", nil
	}

	return "", nil
}

func newFixture(t *testing.T, db *storage.DB) *fixture {
	t.Helper()

	f := &fixture{T: t, db: db, clock: clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}

	var err error
	if f.director, err = simulator.New(simulator.Options{}); err != nil {
		t.Fatal(err)
	}

	server := httptest.NewServer(f.director)
	t.Cleanup(server.Close)

	if f.client, err = director.New(director.Options{
		URL: server.URL + simulator.GraphQLPath, Transport: server.Client().Transport, Credentials: credentials(server.URL + simulator.TokenPath),
	}); err != nil {
		t.Fatal(err)
	}

	keys := storagetest.Keys(t)

	ops, err := operations.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	if f.rows, err = runtimes.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	f.registrar = &registration.Registrar{Director: f.client, Rows: f.rows, Project: "project", Clock: f.clock, Log: logging.Discard()}
	f.caretaker = registration.Caretaker{Director: f.client, Rows: f.rows, OfRuntime: f.ofRuntime, Clock: f.clock, Log: logging.Discard()}
	f.service = orders.New(orders.Options{
		DB: db, Operations: ops, Runtimes: f.rows, Clock: f.clock, Registrar: f.registrar, Wake: func() {}, Shoots: f,
		Check: func(runtimes.Runtime) error { return f.refused },
	})

	return f
}

// Get implements shoot.Reader. It finds no Shoot.
func (f *fixture) Get(context.Context, string) (*gardencorev1beta1.Shoot, error) {
	return nil, failure.New(failure.NotFound, "no cluster")
}

// credentials is the address of the token endpoint. It implements director.Credentials with values that the fake Director
// accepts.
type credentials string

func (c credentials) Read(context.Context) (director.ClientCredentials, error) {
	return director.ClientCredentials{
		ClientID: simulator.DefaultClientID, ClientSecret: secret.String(simulator.DefaultClientSecret), TokensEndpoint: string(c),
	}, nil
}

func each(t *testing.T, test func(f *fixture)) {
	t.Helper()

	storagetest.EachEmptyDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()
		test(newFixture(t, db))
	})
}

// provision orders a cluster and returns the ID of its runtime.
func (f *fixture) provision(caller, key, name string) (string, error) {
	f.Helper()

	status, err := f.service.Provision(f.Context(), orders.Caller{Tenant: caller, IdempotencyKey: key}, spec.Runtime{
		Metadata:      &spec.Metadata{Name: name, Labels: map[string]any{"theirs": "kept"}},
		ClusterConfig: &spec.ClusterConfig{GardenerConfig: &spec.Cluster{Name: name, Provider: "aws"}},
	})
	if err != nil {
		return "", err
	}

	return status.RuntimeID, nil
}

func (f *fixture) care() {
	f.Helper()

	if err := f.caretaker.Care(f.Context()); err != nil {
		f.Fatal(err)
	}
}

// end sets the final state of all operations.
func (f *fixture) end(state string) {
	f.Helper()

	if _, err := storage.Exec(f.Context(), f.db.Writer(), `UPDATE operations SET state = ?, finished_at = ?`,
		state, storage.At(f.clock.Now())); err != nil {
		f.Fatal(err)
	}
}

// registered returns the IDs of the runtimes in Director.
func (f *fixture) registered() []string {
	ids := []string{}
	for _, runtime := range f.director.Runtimes() {
		ids = append(ids, runtime.ID)
	}

	return ids
}

// unsettled returns the number of registrations that have not been settled. Settling a registration deletes its row.
func (f *fixture) unsettled() int {
	f.Helper()

	count, err := storage.Get[int](f.Context(), f.db.Reader(), `SELECT count(*) FROM registrations`)
	if err != nil {
		f.Fatal(err)
	}

	return count
}

// registerAgain registers a runtime in Director without storing a row, as a paused replica does when it continues late.
func (f *fixture) registerAgain(name string, labels map[string]any) error {
	_, err := f.client.Register(f.Context(), tenant, director.Runtime{Name: name, Labels: labels})

	return err
}
