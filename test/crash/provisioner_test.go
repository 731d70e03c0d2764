package crash

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	simulator "github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/crashtest"
	"github.com/environment-broker/environment-broker/provisioner/agent"
	gardenerclient "github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// provisioner is the Provisioner's database, its API and its garden.
type provisioner struct {
	*gardener

	provisionerRows

	service *orders.Service
	// director is nil if the Provisioner does not register runtimes.
	director *simulator.Director
	// administrators are the administrators in the cluster.
	administrators atomic.Pointer[[]string]
	// kyma is the installation in the cluster.
	kyma   kymaInside
	agents *agents
}

func newProvisioner(t *testing.T, db *storage.DB, memory *fakegarden.Memory) *provisioner {
	t.Helper()

	p := &provisioner{gardener: newGardener(t, memory), provisionerRows: openProvisioner(t, db, storagetest.Keys(t)), agents: newAgents()}
	p.service = orders.New(orders.Options{
		DB: db, Operations: p.operations, Runtimes: p.runtimes, Kubeconfigs: p, Shoots: gardenerclient.New(p, p.namespace), Clock: clock.RealClock{}, KubeconfigValidity: time.Hour,
		Releases: releases{},
		Agents:   agent.NewStatuses(agentsOf{p.agents, crashtest.Transparent()}, gardenerclient.New(p, p.namespace), clock.RealClock{}),
		Recorder: audit.NewRecorder(p.trail, db, clock.RealClock{}, logging.Discard()),
		Wake:     func() {},
		Validate: func(order spec.Runtime) error {
			return validation.Provision(order, validation.Rules{Project: fakegarden.DefaultProject})
		},
		Check: func(runtimes.Runtime) error { return nil },
	})

	return p
}

// AdminKubeconfig implements runtimes.Kubeconfigs.
func (p *provisioner) AdminKubeconfig(_ context.Context, shootName string, _ time.Duration) ([]byte, error) {
	return []byte("kubeconfig of " + shootName), nil
}

// handler returns the GraphQL API.
func (p *provisioner) handler() http.Handler {
	return graph.NewHandler(graph.Options{
		Service: p.service, Log: logging.Discard(), Endpoint: "/graphql",
	})
}

// processes returns the processes that a replica of the Provisioner registers.
func (p *provisioner) processes(proxy *crashtest.Proxy) []process.Process[operation.Data] {
	config := service.DefaultConfig()
	config.Gardener.Project = fakegarden.DefaultProject
	config.Gardener.PollInterval = 5 * time.Second

	parts := service.Parts{
		Shoots: gardenerclient.New(p.by(proxy), p.namespace), Clusters: insides{p, proxy}, Runtimes: runtimeRows{p.runtimes, proxy},
		Releases: releases{}, Installer: installer{&p.kyma, proxy},
		Agents: agentsOf{p.agents, proxy},
	}
	if p.director != nil {
		client := p.directorBy(proxy)
		parts.Director, parts.Tokens = client, client
	}

	return service.Processes(config, parts)
}

// runtimeRows are the Provisioner's rows of runtimes behind a replica's proxy.
type runtimeRows struct {
	store *runtimes.Store
	proxy *crashtest.Proxy
}

// Configured implements processes.Runtimes.
func (r runtimeRows) Configured(ctx context.Context, id string, configuration json.RawMessage, position int64) error {
	return r.proxy.Call(ctx, "Configured", func(ctx context.Context) error {
		return r.store.Configured(ctx, id, configuration, position)
	})
}

// insides are the clusters' API servers behind a replica's proxy.
type insides struct {
	provisioner *provisioner
	proxy       *crashtest.Proxy
}

// SetAdministrators implements processes.Clusters.
func (i insides) SetAdministrators(ctx context.Context, _ string, users []string) error {
	err := i.proxy.Call(ctx, "SetAdministrators", func(context.Context) error {
		i.provisioner.administrators.Store(&users)

		return nil
	})
	if err != nil {
		return failure.Wrap(failure.Transient, err, "the cluster does not respond")
	}

	return nil
}

// MarkDeleted implements processes.Runtimes.
func (r runtimeRows) MarkDeleted(ctx context.Context, id string, at time.Time) error {
	return r.proxy.Call(ctx, "MarkDeleted", func(ctx context.Context) error { return r.store.MarkDeleted(ctx, id, at) })
}

func (p *provisioner) order() (operationID, runtimeID string) {
	p.Helper()

	return p.accepted(order("c-first"))
}

func (p *provisioner) accepted(input spec.Runtime) (operationID, runtimeID string) {
	p.Helper()

	status, err := p.service.Provision(p.Context(), orders.Caller{Tenant: "tenant", SubAccount: "sub", IdempotencyKey: "key"}, input)
	if err != nil {
		p.Fatal(err)
	}

	return status.ID, status.RuntimeID
}

func (p *provisioner) remove(runtimeID string) string {
	p.Helper()

	id, err := p.service.Deprovision(p.Context(), orders.Caller{Tenant: "tenant", IdempotencyKey: "removal"}, runtimeID)
	if err != nil {
		p.Fatal(err)
	}

	return id
}

// upgrade changes the machines, the identity provider and the administrator.
func (p *provisioner) upgrade(runtimeID string) string {
	p.Helper()

	status, err := p.service.UpgradeShoot(p.Context(), orders.Caller{Tenant: "tenant", IdempotencyKey: "upgrade"}, runtimeID,
		spec.Upgrade{
			GardenerConfig: &spec.ClusterUpgrade{AutoScalerMax: new(5), OIDCConfig: &spec.OIDC{
				ClientID: "client", IssuerURL: "https://issuer.example.com", UsernameClaim: "sub", UsernamePrefix: "-", SigningAlgs: []string{},
			}},
			Administrators: []string{"joe@example.com"},
		})
	if err != nil {
		p.Fatal(err)
	}

	return status.ID
}

// sleeping sends a mutation that takes only a runtime, like hibernation.
func (p *provisioner) sleeping(
	order func(ctx context.Context, caller orders.Caller, runtimeID string) (operation.Status, error), key, runtimeID string,
) string {
	p.Helper()

	status, err := order(p.Context(), orders.Caller{Tenant: "tenant", IdempotencyKey: key}, runtimeID)
	if err != nil {
		p.Fatal(err)
	}

	return status.ID
}

// order returns the input for a cluster with the name.
func order(name string) spec.Runtime {
	return spec.Runtime{
		Metadata: &spec.Metadata{Name: name},
		ClusterConfig: &spec.ClusterConfig{Administrators: []string{"jane@example.com"}, GardenerConfig: &spec.Cluster{
			Name: name, KubernetesVersion: "1.35.4", Provider: "aws", TargetSecret: "aws", Region: "eu-central-1",
			MachineType: "m6i.large", DiskType: new("gp3"), VolumeSizeGB: new(50), WorkerCIDR: "10.250.0.0/16",
			AutoScalerMin: 1, AutoScalerMax: 3, MaxSurge: 1, Purpose: new("evaluation"),
			ProviderSpecificConfig: &spec.Provider{AWSConfig: &spec.AWS{
				VpcCIDR: "10.250.0.0/16",
				AWSZones: []*spec.AWSZone{{
					Name: "eu-central-1a", WorkerCIDR: "10.250.0.0/19", PublicCIDR: "10.250.32.0/20", InternalCIDR: "10.250.48.0/20",
				}},
			}},
		}},
	}
}

// clusters is the state outside of the Provisioner.
type clusters struct {
	// Made counts the clusters created so far. It is 0 if the count depends on the fault.
	Made     int
	Left     int
	Runtimes int
	// ConfigMaps counts the ConfigMaps of Shoots.
	ConfigMaps int
	// Machines is the limit of machines in Gardener, Recorded the one in the runtime's row. Both are 0 without a cluster.
	Machines, Recorded int
	Administrators     string
	Asleep             bool
	// Kyma is the installation, RecordedKyma the version in the runtime's row. Services counts external services,
	// Held the service brokers with finalizers.
	Kyma, RecordedKyma string
	Services, Held     int
	Agent              connection
	// Registered are the runtimes in Director.
	Registered []string
}

// removeOrphans runs the Provisioner's periodic search for orphans, and waits until Gardener has deleted them.
func (p *provisioner) removeOrphans() {
	p.Helper()

	ctx, stop := context.WithTimeout(p.Context(), 3*deletion)
	defer stop()

	orphans := service.Orphans{Runtimes: p.runtimes, Shoots: gardenerclient.New(p, p.namespace), Log: logging.Discard()}
	if err := orphans.Part().Run(ctx); err != nil {
		p.Error(err)
	}
}

func (p *provisioner) clusters(chance bool) clusters {
	p.Helper()

	if _, _, left := p.count(); left > 0 {
		p.removeOrphans()
	}

	made, most, left := p.count()
	if most > 1 {
		p.Errorf("%d clusters existed at the same time, want one at most", most)
	}

	if chance {
		made = 0
	}

	live, err := storage.Get[int](p.Context(), p.db.Reader(), `SELECT count(*) FROM runtimes WHERE deleted_at IS NULL`)
	if err != nil {
		p.Fatal(err)
	}

	state := clusters{
		Made: made, Left: left, Runtimes: live, ConfigMaps: len(p.configMaps()), Registered: p.registered(), Agent: p.agents.connection(),
	}
	for _, shoot := range p.shoots() {
		state.Machines = int(shoot.Spec.Provider.Workers[0].Maximum)
		state.Asleep = shoot.Status.IsHibernated
	}

	if names := p.administrators.Load(); names != nil && left > 0 {
		state.Administrators = strings.Join(*names, ", ")
		order := p.recorded(p.shoots()[0].Name)
		state.Recorded = order.ClusterConfig.GardenerConfig.AutoScalerMax

		if order.KymaConfig != nil {
			state.RecordedKyma = order.KymaConfig.Version
		}
	}

	state.Kyma, state.Services, state.Held = p.kyma.report()
	if chance {
		state.Kyma = ""
	}

	return state
}

// recorded returns the order in the runtime's row.
func (p *provisioner) recorded(shootName string) spec.Runtime {
	p.Helper()

	runtime, err := p.runtimes.OfShoot(p.Context(), p.runtimes.Reader(), shootName)
	if err != nil {
		p.Fatal(err)
	}

	order, err := operation.OrderOf(runtime)
	if err != nil {
		p.Fatal(err)
	}

	return order
}

type provisionerRun = crashtest.Run[operation.Data]

// runtimeRequest sends a client's request for its runtime and returns the ID of the operation that it starts.
type runtimeRequest func(p *provisioner, runtimeID string) (operationID string)

// provisionerScenario is a scenario for one operation of a runtime.
type provisionerScenario struct {
	name, kind string
	// with prepares the Provisioner.
	with []func(*provisioner)
	// provision orders the runtime.
	provision func(*provisioner) (operationID, runtimeID string)
	// duringCreation sends the request after the time of a creation, without waiting for the order. The progress of the order depends on
	// the fault.
	duringCreation bool
	// before are requests whose operations end before faults are injected.
	before []runtimeRequest
	// during, if set, is a request before the scenario's request, which follows while the cluster changes. The progress of its operation
	// depends on the fault.
	during runtimeRequest
	// request starts the operation whose outcome must not depend on the fault. It is the order if nil.
	request runtimeRequest
}

func (s provisionerScenario) script(p *provisioner, run *provisionerRun) (operationIDs []string) {
	fromOrder := s.request == nil || s.duringCreation
	if fromOrder {
		run.InjectFaults()
	}

	id, runtimeID := s.provision(p)

	switch {
	case s.duringCreation:
		run.Sleep(creation)
	case !fromOrder:
		run.Await(id)

		for _, each := range s.before {
			run.Await(each(p, runtimeID))
		}

		run.InjectFaults()
	}

	if s.during != nil {
		s.during(p, runtimeID)
		run.Sleep(change)
	}

	if s.request != nil {
		id = s.request(p, runtimeID)
	}

	run.Await(id)

	return []string{id}
}

// newProvisionerScenarios returns scenarios that run on a new database each.
func newProvisionerScenarios(memory *fakegarden.Memory, open database, scenarios ...provisionerScenario) []crashtest.Scenario[operation.Data] {
	made := make([]crashtest.Scenario[operation.Data], 0, len(scenarios))

	for _, each := range scenarios {
		chance := each.duringCreation || each.during != nil

		made = append(made, crashtest.Scenario[operation.Data]{Name: each.name, Kind: each.kind, Open: func(t *testing.T) crashtest.Env[operation.Data] {
			t.Helper()

			p := newProvisioner(t, open(t), memory)
			for _, prepare := range each.with {
				prepare(p)
			}

			return crashtest.Env[operation.Data]{
				Store: p.operations, Processes: p.processes, Upstream: func() any { return p.clusters(chance) }, AnyData: chance,
				Script: func(run *provisionerRun) []string { return each.script(p, run) },
			}
		}})
	}

	return made
}

func (p *provisioner) hibernate(runtimeID string) string {
	return p.sleeping(p.service.Hibernate, "sleep", runtimeID)
}

func (p *provisioner) wakeUp(runtimeID string) string {
	return p.sleeping(p.service.WakeUp, "wake", runtimeID)
}

func (p *provisioner) rollBack(runtimeID string) string {
	return p.sleeping(p.service.RollBackUpgrade, "back", runtimeID)
}

func provisionerScenarios(memory *fakegarden.Memory, open database) []crashtest.Scenario[operation.Data] {
	type p = *provisioner

	registered := []func(p){withDirector}

	return newProvisionerScenarios(memory, open,
		provisionerScenario{name: "provision-with-kyma", kind: operation.KindProvision, with: registered, provision: p.orderWithKyma},
		provisionerScenario{name: "upgrade-kyma", kind: operation.KindUpgrade, provision: p.orderWithKyma, request: p.upgradeKyma},
		provisionerScenario{
			name: "roll-back-kyma", kind: operation.KindRollBack,
			provision: p.orderWithKyma, before: []runtimeRequest{p.upgradeKyma}, request: p.rollBack,
		},
		provisionerScenario{name: "deprovision-with-kyma", kind: operation.KindDeprovision, provision: p.orderWithKyma, request: p.remove},
		provisionerScenario{
			name: "deprovision-during-kyma-upgrade", kind: operation.KindDeprovision,
			provision: p.orderWithKyma, during: p.upgradeKyma, request: p.remove,
		},
		provisionerScenario{name: "provision", kind: operation.KindProvisionNoInstall, provision: p.order},
		provisionerScenario{name: "provision-registered", kind: operation.KindProvisionNoInstall, with: registered, provision: p.order},
		provisionerScenario{name: "upgrade-shoot", kind: operation.KindUpgradeShoot, provision: p.order, request: p.upgrade},
		provisionerScenario{
			name: "deprovision-during-upgrade", kind: operation.KindUpgradeShoot,
			provision: p.order, during: p.upgrade, request: p.remove,
		},
		provisionerScenario{name: "hibernate", kind: operation.KindHibernate, provision: p.order, request: p.hibernate},
		provisionerScenario{
			name: "wake-up", kind: operation.KindWakeUp,
			provision: p.order, before: []runtimeRequest{p.hibernate}, request: p.wakeUp,
		},
		provisionerScenario{
			name: "reconnect-agent", kind: operation.KindReconnectRuntime,
			with: registered, provision: p.orderWithKyma, request: p.reconnect,
		},
		provisionerScenario{name: "deprovision", kind: operation.KindDeprovisionNoInstall, provision: p.order, request: p.remove},
		provisionerScenario{
			name: "deprovision-registered", kind: operation.KindDeprovisionNoInstall,
			with: registered, provision: p.order, request: p.remove,
		},
		provisionerScenario{
			name: "deprovision-during-creation", kind: operation.KindDeprovisionNoInstall,
			provision: p.order, duringCreation: true, request: p.remove,
		},
	)
}
