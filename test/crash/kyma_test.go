package crash

import (
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process/crashtest"
	"github.com/environment-broker/environment-broker/provisioner/agent"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// releases accepts every Kyma order.
type releases struct{}

// Plan implements installation.Releases.
func (releases) Plan(_ context.Context, order spec.Kyma) (installation.Plan, error) {
	plan := installation.Plan{Version: order.Version}
	for _, component := range order.Components {
		plan.Components = append(plan.Components, installation.Component{Name: component.Component})
	}

	return plan, nil
}

// kymaInstallation is the Kyma installation in the only cluster, with the external services of that cluster.
type kymaInstallation struct {
	mutex      sync.Mutex
	components []string
	services   int
	// heldBrokers is the number of service brokers with finalizers.
	heldBrokers int
}

// report returns the installed components, each as component@version, the number of external services, and the number of
// service brokers with finalizers.
func (k *kymaInstallation) report() (components string, services, heldBrokers int) {
	k.mutex.Lock()
	defer k.mutex.Unlock()

	return strings.Join(k.components, " "), k.services, k.heldBrokers
}

// advance installs, upgrades or removes at most one component, so that the installation approaches want. It returns true if
// nothing was left to do.
func (k *kymaInstallation) advance(want []string) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()

	for i, component := range want {
		if i == len(k.components) {
			k.components = append(k.components, component)

			return false
		}

		if k.components[i] != component {
			k.components = slices.Clone(k.components)
			k.components[i] = component

			return false
		}
	}

	if len(k.components) > len(want) {
		k.components = k.components[:len(k.components)-1]

		return false
	}

	return true
}

// installer installs and removes Kyma, one component per call.
type installer struct {
	kyma  *kymaInstallation
	proxy *crashtest.Proxy
}

// Install implements installation.Installer.
func (i installer) Install(ctx context.Context, _ installation.Target, plan installation.Plan) (installation.Progress, error) {
	want := make([]string, 0, len(plan.Components))
	for _, component := range plan.Components {
		want = append(want, component.Name+"@"+plan.Version)
	}

	return i.advance(ctx, "Install", want)
}

// Uninstall implements installation.Installer.
func (i installer) Uninstall(ctx context.Context, _ installation.Target) (installation.Progress, error) {
	return i.advance(ctx, "Uninstall", nil)
}

func (i installer) advance(ctx context.Context, call string, want []string) (progress installation.Progress, err error) {
	progress.Message = "Kyma is being changed"
	err = callCluster(ctx, i.proxy, call, func() { progress.Done = i.kyma.advance(want) })

	return progress, err
}

// proxiedClusters accesses the API server of the only cluster through the proxy of a replica.
type proxiedClusters struct {
	provisioner *provisioner
	proxy       *crashtest.Proxy
}

// SetAdministrators implements processes.Clusters.
func (c proxiedClusters) SetAdministrators(ctx context.Context, _ string, users []string, confirm func(context.Context) error) error {
	if err := confirm(ctx); err != nil {
		return err
	}

	return callCluster(ctx, c.proxy, "SetAdministrators", func() { c.provisioner.administrators.Store(&users) })
}

// Connect implements processes.Clusters.
func (c proxiedClusters) Connect(ctx context.Context, _ string) (*rest.Config, func(), error) {
	if err := callCluster(ctx, c.proxy, "Connect", func() {}); err != nil {
		return nil, nil, err
	}

	return &rest.Config{}, func() {}, nil
}

// RemoveServices implements processes.Clusters.
func (c proxiedClusters) RemoveServices(ctx context.Context, _, _ string) (remaining string, err error) {
	err = callCluster(ctx, c.proxy, "RemoveServices", func() {
		kyma := &c.provisioner.kyma

		kyma.mutex.Lock()
		defer kyma.mutex.Unlock()

		if kyma.services > 0 {
			remaining = "some of its services"
			kyma.services--
		}
	})

	return remaining, err
}

// ReleaseBrokers implements processes.Clusters.
func (c proxiedClusters) ReleaseBrokers(ctx context.Context, _ string) error {
	return callCluster(ctx, c.proxy, "ReleaseBrokers", func() {
		kyma := &c.provisioner.kyma

		kyma.mutex.Lock()
		defer kyma.mutex.Unlock()

		kyma.heldBrokers = 0
	})
}

// callCluster calls the only cluster through the proxy. It returns an injected fault as a transient failure of the cluster.
func callCluster(ctx context.Context, proxy *crashtest.Proxy, name string, call func()) error {
	if err := proxy.Call(ctx, name, func(context.Context) error {
		call()

		return nil
	}); err != nil {
		return failure.Wrap(failure.Transient, err, "the cluster does not respond")
	}

	return nil
}

func kymaOf(version string, components ...string) *spec.Kyma {
	config := &spec.Kyma{Version: version}
	for _, name := range components {
		config.Components = append(config.Components, &spec.Component{Component: name, Namespace: "kyma-system"})
	}

	return config
}

// provisionWithKyma orders a runtime with Kyma. The cluster of the runtime has external services and service brokers.
func (p *provisioner) provisionWithKyma() (operationID, runtimeID string) {
	p.Helper()

	p.kyma.services, p.kyma.heldBrokers = 2, 1
	input := clusterOrder("c-first")
	input.KymaConfig = kymaOf("1.24.0", "core", agent.Component)

	return p.sendOrder(input)
}

func (p *provisioner) upgradeKyma(runtimeID string) string {
	p.Helper()

	status, err := p.service.UpgradeRuntime(p.Context(), orders.Caller{Tenant: "tenant", IdempotencyKey: "kyma"}, runtimeID,
		spec.KymaUpgrade{KymaConfig: kymaOf("2.0.0", agent.Component)})
	if err != nil {
		p.Fatal(err)
	}

	return status.ID
}

func (p *provisioner) upgradeRuntime(runtimeID string) string {
	p.Helper()

	status, err := p.service.UpgradeRuntime(p.Context(), orders.Caller{Tenant: "tenant", IdempotencyKey: "kyma"}, runtimeID, spec.KymaUpgrade{
		KymaConfig: kymaOf("2.0.0", agent.Component), ClusterConfig: &spec.ClusterVersion{KubernetesVersion: "1.36"},
	})
	if err != nil {
		p.Fatal(err)
	}

	return status.ID
}
