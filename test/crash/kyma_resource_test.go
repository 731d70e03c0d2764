package crash

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/kyma"
	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecontrolplane"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/process/crashtest"
	"github.com/environment-broker/environment-broker/resources"
)

// kymaDelay is the time between an order and the deletion of the instance. The deletion arrives while Lifecycle Manager's objects
// are being created.
const kymaDelay = 12300 * time.Millisecond

// restoreDelay is the time between the deletion of an instance and the loss of its Secret. A replica restores the Secret while the
// runtime is being removed. If this replica is frozen, it restores the Secret after the deletion should have removed it.
const restoreDelay = 45 * time.Second

// managedPlans returns the plans of a broker that uses Lifecycle Manager.
func managedPlans(t *testing.T) *catalog.Catalog {
	t.Helper()

	plans, err := catalog.Load(resources.Catalog(), catalog.Options{
		KubernetesVersion: "1.35.4", OperationTimeout: 24 * time.Hour, LifecycleManager: true,
	})
	if err != nil {
		t.Fatal(err)
	}

	return plans
}

// controlPlane is the simulated control plane behind the proxies of the replicas.
type controlPlane struct {
	*fakecontrolplane.ControlPlane

	kubeconfig string
}

func newControlPlane(t *testing.T) *controlPlane {
	t.Helper()

	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, fakecontrolplane.Kubeconfig("https://control-plane.example.com"), 0o600); err != nil {
		t.Fatal(err)
	}

	return &controlPlane{fakecontrolplane.New(), path}
}

// connect makes the processes of a replica use the control plane through the replica's proxy.
func (c *controlPlane) connect(parts *service.Parts, proxy *crashtest.Proxy) {
	plane := &kyma.ControlPlane{
		KubeconfigPath: c.kubeconfig, Namespace: "kcp-system",
		Wrap: func(http.RoundTripper) http.RoundTripper {
			return proxy.Client(c, controlPlaneOperation).Transport
		},
	}
	parts.Kyma.ControlPlane, parts.Kyma.Version = plane, ""
	parts.LifecycleManager = lifecyclemanager.New(plane, kyma.CallTimeout)
}

// controlPlaneOperation returns a name for a call to the control plane, which does not contain the names of objects.
func controlPlaneOperation(request *http.Request) string {
	name := "ControlPlane" + request.Method

	for _, part := range []string{"configmaps", "secrets", "kymas"} {
		if strings.Contains(request.URL.Path, part) {
			return name + part
		}
	}

	return name
}

// state formats the objects, without the IDs of runtimes.
func (c *controlPlane) state() []string {
	var lines []string

	for _, each := range c.Objects("Kyma") {
		state, _, _ := unstructured.NestedString(each.Object, "status", "state")
		lines = append(lines, "Kyma "+state+" "+strings.Join(fakecontrolplane.Modules(each), " "))
	}

	for range c.Objects("Secret") {
		lines = append(lines, "Secret")
	}

	return lines
}

// upgradeResource orders a Kyma upgrade without a version.
func (f *brokerFixture) upgradeResource() string {
	return f.upgrade(environment.KindUpgradeKyma, "")
}

// leaveKyma deletes the instance while the control plane rejects all calls, so that the deletion gives up.
func (f *brokerFixture) leaveKyma() string {
	f.controlPlane.Inject(simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 300, Times: -1})

	return f.deprovisionKyma()
}

// cleanUpKyma ends the rejections, and starts the cleanup of the leftover.
func (f *brokerFixture) cleanUpKyma() string {
	f.controlPlane.Reset()

	return f.cleanUp()
}

// kymaResourceScenarios returns the scenarios with Lifecycle Manager.
func kymaResourceScenarios(t *testing.T, garden *fakegarden.Memory, open database) []crashtest.Scenario[environment.Data] {
	t.Helper()

	type f = *brokerFixture

	ready := []request{f.provisionKyma}

	return newBrokerScenarios(t, garden, open,
		brokerScenario{name: "provision-kyma-resource", kind: environment.KindProvision, managed: true, request: f.provisionKyma},
		brokerScenario{name: "update-kyma-resource", kind: environment.KindUpdate, managed: true, before: ready, request: f.updateModules},
		brokerScenario{
			name: "renew-kyma-secret", managed: true, background: renewal, before: ready, prepare: f.renew, until: renewedTwice,
		},
		brokerScenario{
			name: "restore-kyma-secret", managed: true, background: renewal, before: ready, prepare: f.loseSecret, until: happened("restored"),
		},
		brokerScenario{name: "upgrade-kyma-resource", kind: environment.KindUpgradeKyma, managed: true, before: ready, request: f.upgradeResource},
		brokerScenario{
			name: "deprovision-kyma-resource", kind: environment.KindDeprovision, managed: true, before: ready, request: f.deprovisionKyma, gone: true,
		},
		brokerScenario{
			name: "deprovision-during-restoration", kind: environment.KindDeprovision, managed: true, background: renewal, before: ready,
			request: f.deprovisionKyma, delay: restoreDelay, meanwhile: f.loseSecret, gone: true,
		},
		brokerScenario{
			name: "deprovision-kyma-resource-during-creation", kind: environment.KindDeprovision, managed: true,
			during: f.provisionKyma, delay: kymaDelay, request: f.deprovisionKyma,
		},
		brokerScenario{
			name: "cleanup-kyma-resource", kind: environment.KindCleanup, managed: true,
			before: []request{f.provisionKyma, f.leaveKyma}, request: f.cleanUpKyma, gone: true,
		},
	)
}
