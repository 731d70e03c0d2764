package registration_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"go.uber.org/goleak"
	clocktesting "k8s.io/utils/clock/testing"

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

func TestMain(m *testing.M) { postgrestest.Main(leakless{m}) }

// leakless fails if the tests leak goroutines.
type leakless struct{ *testing.M }

func (l leakless) Run() int {
	code := l.M.Run()

	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	return code
}

const tenant = "tenant-1"

// bench is a service that registers its runtimes in a simulated Director.
type bench struct {
	*testing.T

	director  *simulator.Director
	client    *director.Client
	service   *orders.Service
	registrar *registration.Registrar
	caretaker registration.Caretaker
	clock     *clocktesting.FakeClock
	db        *storage.DB
	rows      *runtimes.Store

	refused error // the error of Check
}

func newBench(t *testing.T, db *storage.DB) *bench {
	t.Helper()

	b := &bench{T: t, db: db, clock: clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}

	var err error
	if b.director, err = simulator.New(simulator.Options{}); err != nil {
		t.Fatal(err)
	}

	server := httptest.NewServer(b.director)
	t.Cleanup(server.Close)

	if b.client, err = director.New(director.Options{
		URL: server.URL + simulator.GraphQLPath, Transport: server.Client().Transport, Credentials: credentials(server.URL + simulator.TokenPath),
	}); err != nil {
		t.Fatal(err)
	}

	keys := storagetest.Keys(t)

	ops, err := operations.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	if b.rows, err = runtimes.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	b.registrar = &registration.Registrar{Director: b.client, Rows: b.rows, Project: "project", Clock: b.clock, Log: logging.Discard()}
	b.caretaker = registration.Caretaker{Director: b.client, Rows: b.rows, Clock: b.clock, Log: logging.Discard()}
	b.service = orders.New(orders.Options{
		DB: db, Operations: ops, Runtimes: b.rows, Clock: b.clock, Registrar: b.registrar, Wake: func() {}, Shoots: b,
		Check: func(runtimes.Runtime) error { return b.refused },
	})

	return b
}

// Get implements shoot.Reader: no cluster exists.
func (b *bench) Get(context.Context, string) (*gardencorev1beta1.Shoot, error) {
	return nil, errors.New("no cluster")
}

// credentials are valid for the simulated Director at the token endpoint.
type credentials string

func (c credentials) Read(context.Context) (director.ClientCredentials, error) {
	return director.ClientCredentials{
		ClientID: simulator.DefaultClientID, ClientSecret: secret.String(simulator.DefaultClientSecret), TokensEndpoint: string(c),
	}, nil
}

// each runs the test on both databases.
func each(t *testing.T, test func(b *bench)) {
	t.Helper()

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()
		test(newBench(t, db))
	})
}

// provision orders a cluster and returns the id of its runtime.
func (b *bench) provision(caller, key, name string) (string, error) {
	b.Helper()

	status, err := b.service.Provision(b.Context(), orders.Caller{Tenant: caller, IdempotencyKey: key}, spec.Runtime{
		Metadata:      &spec.Metadata{Name: name, Labels: map[string]any{"theirs": "kept"}},
		ClusterConfig: &spec.ClusterConfig{GardenerConfig: &spec.Cluster{Name: name, Provider: "aws"}},
	})
	if err != nil {
		return "", err
	}

	return status.RuntimeID, nil
}

func (b *bench) care() {
	b.Helper()

	if err := b.caretaker.Care(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// end ends all operations in the state.
func (b *bench) end(state string) {
	b.Helper()

	if _, err := storage.Exec(b.Context(), b.db.Writer(), `UPDATE operations SET state = ?, finished_at = ?`,
		state, storage.At(b.clock.Now())); err != nil {
		b.Fatal(err)
	}
}

// registered returns the ids of the runtimes in Director.
func (b *bench) registered() []string {
	ids := []string{}
	for _, runtime := range b.director.Runtimes() {
		ids = append(ids, runtime.ID)
	}

	return ids
}

// unsettled counts the rows of registrations that are not settled.
func (b *bench) unsettled() int {
	b.Helper()

	count, err := storage.Get[int](b.Context(), b.db.Reader(), `SELECT count(*) FROM registrations`)
	if err != nil {
		b.Fatal(err)
	}

	return count
}

// registerAgain registers a runtime in Director, as the late call of a replica does.
func (b *bench) registerAgain(name string, labels map[string]any) error {
	_, err := b.client.Register(b.Context(), tenant, director.Runtime{Name: name, Labels: labels})

	return err
}
