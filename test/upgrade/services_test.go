package upgrade_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	broker      = "broker"
	provisioner = "provisioner"
)

// replicas contains brokers and Provisioners of both versions, which run as processes with the same databases and the same fake
// garden.
type replicas struct {
	*testing.T

	garden     *fakegarden.Memory
	kubeconfig string
	databases  map[string]replica.Database
	// toProvisioner distributes the brokers' calls among the running Provisioners.
	toProvisioner *harness.FaultProxy

	mutex   sync.Mutex
	running map[string]map[version]*replicaProcess
	turn    int
}

// replicaProcess is a running replica of a service.
type replicaProcess struct {
	*harness.Program

	address string
}

// newReplicas prepares the databases and the garden. It does not start any service.
func newReplicas(t *testing.T, brokerDatabase, provisionerDatabase replica.Database) *replicas {
	t.Helper()

	r := &replicas{
		T: t, garden: harness.StartGarden(t, 0),
		databases: map[string]replica.Database{broker: brokerDatabase, provisioner: provisionerDatabase},
		running:   map[string]map[version]*replicaProcess{broker: {}, provisioner: {}},
	}
	r.kubeconfig = harness.ServeGarden(t, r.garden)
	r.toProvisioner = harness.NewFaultProxy(t, r.nextProvisioner)

	return r
}

// nextProvisioner returns the URL of a running Provisioner. If both versions run, it alternates between them.
func (r *replicas) nextProvisioner() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()

	r.turn++

	var addresses []string
	for _, each := range versions() {
		if running := r.running[provisioner][each]; running != nil {
			addresses = append(addresses, running.address)
		}
	}

	if len(addresses) == 0 {
		return "http://127.0.0.1:1" // refuses connections
	}

	return "http://" + addresses[r.turn%len(addresses)]
}

// start starts a Provisioner and a broker of a version, and waits until they are ready.
func (r *replicas) start(v version) {
	r.Helper()

	for _, service := range []string{provisioner, broker} {
		path := v.program(r.T, service)
		address, status := harness.FreeAddress(r), harness.FreeAddress(r)
		own := map[string][]string{
			broker: {
				"APP_AUTH_BASIC_USERS=" + harness.User + ":" + harness.Password + ":osb+admin",
				"APP_PROVISIONER_URL=" + r.toProvisioner.URL + "/graphql", "APP_UNBIND_WAIT=0",
			},
			provisioner: {"APP_GARDENER_PROJECT=" + fakegarden.DefaultProject, "APP_GARDENER_KUBECONFIG_PATH=" + r.kubeconfig},
		}
		started := &replicaProcess{address: address, Program: harness.Launch(r.T, slices.Concat(
			harness.DatabaseVariables(r.databases[service]), own[service],
			[]string{"APP_ADDRESS=" + address, "APP_STATUS_ADDRESS=" + status, "APP_SHUTDOWN_DELAY=0s"},
		), path)}

		harness.Until(r, "the "+string(v)+" "+service+" to be ready", func() bool {
			select {
			case <-started.Ended:
				r.Fatalf("the %s %s has ended", v, service)
			default:
			}

			return isReady(r.Context(), status)
		})

		r.mutex.Lock()
		r.running[service][v] = started
		r.mutex.Unlock()
	}
}

// stop stops the broker and the Provisioner of a version.
func (r *replicas) stop(v version) {
	r.Helper()

	for _, service := range []string{broker, provisioner} {
		r.mutex.Lock()
		ended := r.running[service][v]
		delete(r.running[service], v)
		r.mutex.Unlock()

		if code := ended.Terminate(); code != 0 {
			r.Errorf("the %s %s exited with code %d after SIGTERM", v, service, code)
		}
	}
}

// broker returns a client for the broker of the given version.
func (r *replicas) broker(v version) harness.Client {
	return harness.Client{TB: r.T, Endpoint: harness.Endpoint{
		URL: "http://" + r.running[broker][v].address, User: harness.User, Password: harness.Password,
	}}
}

// isReady reports whether the service with the given status address reports that it is ready.
func isReady(ctx context.Context, status string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+status+"/readyz", nil)
	if err != nil {
		return false
	}

	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return false
	}

	_ = response.Body.Close()

	return response.StatusCode == http.StatusOK
}
