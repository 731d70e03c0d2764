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

// releases accepts every order.
type releases struct{}

// Plan implements installation.Releases.
func (releases) Plan(_ context.Context, order spec.Kyma) (installation.Plan, error) {
	plan := installation.Plan{Version: order.Version}
	for _, component := range order.Components {
		plan.Components = append(plan.Components, installation.Component{Name: component.Component})
	}

	return plan, nil
}

// kymaInside is the Kyma installation in the only cluster, and its external services.
type kymaInside struct {
	mutex    sync.Mutex
	parts    []string
	services int
	// held counts service brokers with finalizers.
	held int
}

// report returns the installed parts, each as component@version, and the counts.
func (k *kymaInside) report() (parts string, services, held int) {
	k.mutex.Lock()
	defer k.mutex.Unlock()

	return strings.Join(k.parts, " "), k.services, k.held
}

// bring changes one part towards the wanted state. It reports whether all parts are in that state already.
func (k *kymaInside) bring(wanted []string) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()

	for i, part := range wanted {
		if i == len(k.parts) {
			k.parts = append(k.parts, part)

			return false
		}

		if k.parts[i] != part {
			k.parts = slices.Clone(k.parts)
			k.parts[i] = part

			return false
		}
	}

	if len(k.parts) > len(wanted) {
		k.parts = k.parts[:len(k.parts)-1]

		return false
	}

	return true
}

// installer changes one part of the cluster with each call.
type installer struct {
	inside *kymaInside
	proxy  *crashtest.Proxy
}

// Install implements installation.Installer.
func (i installer) Install(ctx context.Context, _ *rest.Config, _ string, plan installation.Plan) (installation.Progress, error) {
	wanted := make([]string, 0, len(plan.Components))
	for _, component := range plan.Components {
		wanted = append(wanted, component.Name+"@"+plan.Version)
	}

	return i.bring(ctx, "Install", wanted)
}

// Uninstall implements installation.Installer.
func (i installer) Uninstall(ctx context.Context, _ *rest.Config, _ string) (installation.Progress, error) {
	return i.bring(ctx, "Uninstall", nil)
}

func (i installer) bring(ctx context.Context, call string, wanted []string) (installation.Progress, error) {
	progress := installation.Progress{Message: "Kyma is being changed"}

	err := i.proxy.Call(ctx, call, func(context.Context) error {
		progress.Done = i.inside.bring(wanted)

		return nil
	})
	if err != nil {
		return installation.Progress{}, failure.Wrap(failure.Transient, err, "the cluster does not respond")
	}

	return progress, nil
}

// Connect implements processes.Clusters.
func (i insides) Connect(ctx context.Context, _ string) (*rest.Config, func(), error) {
	if err := i.proxy.Call(ctx, "Connect", func(context.Context) error { return nil }); err != nil {
		return nil, nil, failure.Wrap(failure.Transient, err, "the cluster does not respond")
	}

	return &rest.Config{}, func() {}, nil
}

// RemoveServices implements processes.Clusters.
func (i insides) RemoveServices(ctx context.Context, _, _ string) (left string, err error) {
	err = i.work(ctx, "RemoveServices", func(inside *kymaInside) {
		if inside.services > 0 {
			left = "some of its services"
			inside.services--
		}
	})

	return left, err
}

// ReleaseBrokers implements processes.Clusters.
func (i insides) ReleaseBrokers(ctx context.Context, _ string) error {
	return i.work(ctx, "ReleaseBrokers", func(inside *kymaInside) { inside.held = 0 })
}

// work changes the installation in the only cluster through the proxy.
func (i insides) work(ctx context.Context, call string, change func(*kymaInside)) error {
	err := i.proxy.Call(ctx, call, func(context.Context) error {
		inside := &i.provisioner.kyma

		inside.mutex.Lock()
		defer inside.mutex.Unlock()

		change(inside)

		return nil
	})
	if err != nil {
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

// orderWithKyma orders a cluster with Kyma, which has external services and service brokers.
func (p *provisioner) orderWithKyma() (operationID, runtimeID string) {
	p.Helper()

	p.kyma.services, p.kyma.held = 2, 1
	input := order("c-first")
	input.KymaConfig = kymaOf("1.24.0", "core", agent.Component)

	return p.accepted(input)
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
