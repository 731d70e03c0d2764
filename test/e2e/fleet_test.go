//go:build garden

package e2e

import (
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	brokerReplicas      = 3
	provisionerReplicas = 2
)

// fleet consists of several replicas each of the broker and the Provisioner. The replicas run as processes that share one PostgreSQL
// server and one local garden.
type fleet struct {
	*testing.T

	garden   localProject
	director *fakedirector.Director
	postgres *postgrestest.Server

	brokers, provisioners *replicas
	// toProvisioner forwards the broker's calls to a ready replica of the Provisioner. toGarden forwards the Provisioner's
	// connections to the garden.
	toProvisioner *harness.FaultProxy
	toGarden      *tcpProxy
	// brokerDB and provisionerDB read the databases of the services.
	brokerDB, provisionerDB dbView
}

// newFleet starts a fleet. settings contains environment variables for both services.
func newFleet(t *testing.T, settings ...string) *fleet {
	t.Helper()

	f := newProvisioners(t, "shared", settings...)
	rows := harness.PostgresSettings(f.postgres.Database(t), "broker")
	f.toProvisioner = harness.NewFaultProxy(t, func() string { return "http://" + f.provisioners.address() })
	f.brokers = newReplicas(t, "broker", brokerReplicas, append(append(harness.DatabaseVariables(rows),
		"APP_AUTH_BASIC_USERS="+harness.User+":"+harness.Password+":osb+admin",
		"APP_PROVISIONER_URL="+f.toProvisioner.URL+"/graphql", "APP_PROVISIONER_TIMEOUT=5s"), settings...)...)

	f.allReady()

	f.brokerDB = openDBView(t, "broker", rows)

	return f
}

// newProvisioners starts a fleet without brokers. runtimes is the value of the garden's --runtimes flag.
func newProvisioners(t *testing.T, runtimes string, settings ...string) *fleet {
	t.Helper()

	simulated, director := newDirector(t)
	f := &fleet{
		T: t, garden: localGarden(t, runtimes), director: simulated, postgres: postgrestest.Own(t, "max_connections=200"), brokers: &replicas{},
	}
	rows := harness.PostgresSettings(f.postgres.Database(t), "provisioner")

	toGarden, proxied := proxyGarden(t, f.garden.kubeconfig)
	f.toGarden = toGarden
	f.provisioners = newReplicas(t, "provisioner", provisionerReplicas, append(append(harness.DatabaseVariables(rows),
		"APP_GARDENER_PROJECT="+f.garden.name, "APP_GARDENER_KUBECONFIG_PATH="+proxied), append([]string{
		"APP_DIRECTOR_ENABLED=true", "APP_DIRECTOR_URL=" + director.URL, "APP_DIRECTOR_OAUTH_PATH=" + director.OAuthPath,
	}, settings...)...)...)

	f.allReady()

	f.provisionerDB = openDBView(t, "provisioner", rows)

	return f
}

// until waits until holds returns true. After a time-out, it fails the test with a message that contains what.
func (f *fleet) until(what string, holds func() bool) {
	f.Helper()
	harness.Until(f, what, holds)
}

func (f *fleet) allReady() {
	f.Helper()
	f.until("every replica to be ready", func() bool {
		return f.brokers.readyCount() == len(f.brokers.members) && f.provisioners.readyCount() == len(f.provisioners.members)
	})
}

func (f *fleet) shoots() []gardencorev1beta1.Shoot {
	f.Helper()

	return harness.Shoots(f.T, f.garden)
}

// kill ends a replica with SIGKILL and starts it again.
func (f *fleet) kill(m *member) {
	f.Helper()
	m.running.Kill()
	f.restart(m)
}

// terminate stops a replica with SIGTERM and starts it again. It returns how long the replica took to stop.
func (f *fleet) terminate(m *member) time.Duration {
	f.Helper()

	signaled := time.Now()

	code := m.running.Terminate()
	took := time.Since(signaled)

	if code != 0 {
		f.Errorf("%s exited with code %d after SIGTERM", m.name, code)
	}

	f.restart(m)

	return took
}

// restart starts a replica whose process has ended and waits until all replicas are ready.
func (f *fleet) restart(m *member) {
	f.Helper()
	f.until(m.name+" to become unready", func() bool { return !m.ready.Load() })
	m.restart()
	f.allReady()
}
