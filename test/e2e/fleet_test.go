//go:build garden

package e2e

import (
	"context"
	"syscall"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
)

const (
	brokerReplicas      = 3
	provisionerReplicas = 2
)

// fleet is several replicas of broker and Provisioner, each a program, on one PostgreSQL, with the real garden beside them.
type fleet struct {
	*testing.T

	garden   client.WithWatch
	director *fakedirector.Director
	postgres *postgrestest.Server

	brokers, provisioners *replicas
	// toProvisioner is the one address under which the brokers know the Provisioner, toGarden that under which it knows the garden.
	toProvisioner, toGarden *tcpRoad
	// The rows of the two services.
	brokerBooks, provisionerBooks books
}

// newFleet starts everything. The settings are for both services.
func newFleet(t *testing.T, settings ...string) *fleet {
	t.Helper()

	f := newProvisioners(t, "shared", settings...)
	rows := postgresSettings(f.postgres.Database(t), "broker")
	f.toProvisioner = newRoad(t, f.provisioners.address)
	f.brokers = newReplicas(t, "broker", brokerReplicas, append(append(variables(rows),
		"APP_AUTH_BASIC_USERS="+user+":"+password+":osb+admin",
		"APP_PROVISIONER_URL=http://"+f.toProvisioner.address()+"/graphql", "APP_PROVISIONER_TIMEOUT=5s"), settings...)...)

	f.allReady()

	f.brokerBooks = openBooks(t, "broker", rows)

	return f
}

// newProvisioners starts everything but brokers. Runtimes are what the garden's flag of that name says.
func newProvisioners(t *testing.T, runtimes string, settings ...string) *fleet {
	t.Helper()

	kubeconfig := realGarden(t, "--runtimes="+runtimes, "--cluster-creation=1s")

	api, err := gardener.Connect(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}

	simulated, registering := newDirector(t)
	f := &fleet{
		T: t, garden: api, director: simulated, postgres: postgrestest.Own(t, "max_connections=200"), brokers: &replicas{},
	}
	rows := postgresSettings(f.postgres.Database(t), "provisioner")

	road, byRoad := roadToGarden(t, kubeconfig)
	f.toGarden = road
	f.provisioners = newReplicas(t, "provisioner", provisionerReplicas, append(append(variables(rows),
		"APP_GARDENER_PROJECT=local", "APP_GARDENER_KUBECONFIG_PATH="+byRoad), append(registering, settings...)...)...)

	f.allReady()

	f.provisionerBooks = openBooks(t, "provisioner", rows)

	return f
}

// until looks until it holds.
func (f *fleet) until(what string, holds func() bool) {
	f.Helper()
	platform{TB: f.T}.until(what, holds)
}

// allReady waits until every replica is.
func (f *fleet) allReady() {
	f.Helper()
	f.until("every replica to be ready", func() bool {
		return f.brokers.count() == len(f.brokers.members) && f.provisioners.count() == len(f.provisioners.members)
	})
}

func (f *fleet) shoots() []gardencorev1beta1.Shoot {
	f.Helper()

	found := &gardencorev1beta1.ShootList{}
	if err := f.garden.List(context.Background(), found, client.InNamespace("garden-local")); err != nil {
		f.Fatal(err)
	}

	return found.Items
}

// kill ends a replica as a crash does, and starts it anew.
func (f *fleet) kill(m *member) {
	f.Helper()
	m.running.kill()
	f.begin(m)
}

// terminate restarts a replica as a rolling restart does, and returns how long it took to stop.
func (f *fleet) terminate(m *member) time.Duration {
	f.Helper()

	told := time.Now()

	m.running.terminate()

	took := time.Since(told)

	if code := m.running.command.ProcessState.ExitCode(); code != 0 {
		f.Errorf("%s ended with %d when it was told to stop", m.name, code)
	}

	f.begin(m)

	return took
}

// begin starts a replica that has ended, and waits until all are ready.
func (f *fleet) begin(m *member) {
	f.Helper()
	f.until(m.name+" to be seen to be away", func() bool { return !m.ready.Load() })
	m.restart()
	f.allReady()
}

// terminate ends the program as an orderly stop does, and waits until it is gone.
func (p *program) terminate() {
	p.Helper()
	p.signal(syscall.SIGTERM)

	select {
	case <-p.ended:
	case <-time.After(patience):
		p.Fatalf("the program does not stop within %s", patience)
	}
}
