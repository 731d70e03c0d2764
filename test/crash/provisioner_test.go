package crash

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
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

// provisioner is a Provisioner with its stores, its API and its simulated upstreams.
type provisioner struct {
	*gardener

	provisionerRows

	service *orders.Service
	// director is nil if the Provisioner does not register its runtimes in Director.
	director *simulator.Director
	// administrators lists the administrators of the only cluster. The pointer is nil until they are set.
	administrators atomic.Pointer[[]string]
	// kyma is the Kyma installation in the only cluster.
	kyma   kymaInstallation
	agents *agents
}

func newProvisioner(t *testing.T, db *storage.DB, memory *fakegarden.Memory) *provisioner {
	t.Helper()

	p := &provisioner{gardener: newGardener(t, memory), provisionerRows: openProvisioner(t, db, storagetest.Keys(t)), agents: newAgents()}
	p.service = orders.New(orders.Options{
		DB: db, Operations: p.operations, Runtimes: p.runtimes, Kubeconfigs: p, Shoots: gardenerclient.New(p, p.memory.Namespace()), OfRuntime: gardenerclient.New(p, p.memory.Namespace()).OfRuntime, Clock: clock.RealClock{}, KubeconfigValidity: time.Hour,
		Releases: releases{},
		Consoles: consoles{},
		Agents:   agent.NewStatuses(proxiedAgents{p.agents, crashtest.Transparent()}, gardenerclient.New(p, p.memory.Namespace()), clock.RealClock{}),
		Recorder: audit.NewRecorder(p.auditLog, db, clock.RealClock{}, logging.Discard()),
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

// handler returns the GraphQL API, without authentication.
func (p *provisioner) handler() http.Handler {
	open := auth.Authorizer{Authenticator: auth.NoAuthentication{}}

	return open.Require(auth.RoleOSB)(graph.NewHandler(graph.Options{
		Service: p.service, Log: logging.Discard(), Endpoint: "/graphql",
	}))
}

// processes returns the processes that a replica of the Provisioner registers.
func (p *provisioner) processes(proxy *crashtest.Proxy) []process.Process[operation.Data] {
	config := service.DefaultConfig()
	config.Gardener.Project = fakegarden.DefaultProject
	config.Gardener.PollInterval = 5 * time.Second

	parts := service.Parts{
		Shoots: gardenerclient.New(p.behind(proxy), p.memory.Namespace()), Clusters: proxiedClusters{p, proxy}, Runtimes: proxiedRuntimes{p.runtimes, proxy},
		Releases: releases{}, Installer: installer{&p.kyma, proxy},
		Agents: proxiedAgents{p.agents, proxy},
	}
	if p.director != nil {
		client := p.directorClient(proxy)
		parts.Director, parts.Tokens = client, client
	}

	return service.Processes(config, parts)
}

// proxiedRuntimes accesses the runtimes table through the proxy of a replica.
type proxiedRuntimes struct {
	store *runtimes.Store
	proxy *crashtest.Proxy
}

// Configured implements processes.Runtimes.
func (r proxiedRuntimes) Configured(ctx context.Context, runtime runtimes.Runtime, position int64) error {
	return r.proxy.Call(ctx, "Configured", func(ctx context.Context) error {
		return r.store.Configured(ctx, runtime, position)
	})
}

// MarkDeleted implements processes.Runtimes.
func (r proxiedRuntimes) MarkDeleted(ctx context.Context, id string, at time.Time) error {
	return r.proxy.Call(ctx, "MarkDeleted", func(ctx context.Context) error { return r.store.MarkDeleted(ctx, id, at) })
}

func (p *provisioner) provision() (operationID, runtimeID string) {
	p.Helper()

	return p.sendOrder(clusterOrder("c-first"))
}

func (p *provisioner) sendOrder(input spec.Runtime) (operationID, runtimeID string) {
	p.Helper()

	status, err := p.service.Provision(p.Context(), orders.Caller{Tenant: "tenant", SubAccount: "sub", IdempotencyKey: "key"}, input)
	if err != nil {
		p.Fatal(err)
	}

	return status.ID, status.RuntimeID
}

func (p *provisioner) deprovision(runtimeID string) string {
	p.Helper()

	id, err := p.service.Deprovision(p.Context(), orders.Caller{Tenant: "tenant", IdempotencyKey: "removal"}, runtimeID)
	if err != nil {
		p.Fatal(err)
	}

	return id
}

// upgrade changes the maximum number of nodes, the identity provider and the administrator.
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

// sendMutation sends a mutation whose only argument is a runtime ID, such as hibernation. key is the idempotency key.
func (p *provisioner) sendMutation(
	mutation func(ctx context.Context, caller orders.Caller, runtimeID string) (operation.Status, error), key, runtimeID string,
) string {
	p.Helper()

	status, err := mutation(p.Context(), orders.Caller{Tenant: "tenant", IdempotencyKey: key}, runtimeID)
	if err != nil {
		p.Fatal(err)
	}

	return status.ID
}

// clusterOrder returns an order for a runtime with a cluster. Both have the given name.
func clusterOrder(name string) spec.Runtime {
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

// provisionerState is the state of the Provisioner's rows and upstreams. It must be the same at the end of every run of a
// scenario.
type provisionerState struct {
	// Created is the number of clusters created so far, or 0 if this number depends on the fault. Remaining is the number of
	// existing clusters. Runtimes is the number of runtimes that are not deleted.
	Created   int
	Remaining int
	Runtimes  int
	// ConfigMaps is the number of ConfigMaps that belong to Shoots.
	ConfigMaps int
	// MaxNodes is the maximum number of nodes in the Shoot, and RecordedMaxNodes is the maximum in the runtime's row. Both are
	// 0 without a cluster.
	MaxNodes, RecordedMaxNodes int
	Administrators             string
	Hibernated                 bool
	// Kyma lists the installed components, and RecordedKyma is the version in the runtime's row. Services is the number of
	// external services, and HeldBrokers is the number of service brokers with finalizers.
	Kyma, RecordedKyma    string
	Services, HeldBrokers int
	Agent                 agentConnection
	// Registered lists the runtimes in Director.
	Registered []string
}

// removeOrphans runs the Provisioner's periodic removal of orphaned Shoots, and waits until Gardener has deleted them.
func (p *provisioner) removeOrphans() {
	p.Helper()

	ctx, stop := context.WithTimeout(p.Context(), 3*deletion)
	defer stop()

	orphans := service.Orphans{Runtimes: p.runtimes, Shoots: gardenerclient.New(p, p.memory.Namespace()), Log: logging.Discard()}
	if err := orphans.Part().Run(ctx); err != nil {
		p.Error(err)
	}
}

func (p *provisioner) state(racy bool) provisionerState {
	p.Helper()

	if _, _, remaining := p.count(); remaining > 0 {
		p.removeOrphans()
	}

	created, peak, remaining := p.count()
	if peak > 1 {
		p.Errorf("%d clusters existed at the same time, want at most one", peak)
	}

	if racy {
		created = 0
	}

	live, err := storage.Get[int](p.Context(), p.db.Reader(), `SELECT count(*) FROM runtimes WHERE deleted_at IS NULL`)
	if err != nil {
		p.Fatal(err)
	}

	state := provisionerState{
		Created: created, Remaining: remaining, Runtimes: live, ConfigMaps: len(p.configMaps()), Registered: p.registered(), Agent: p.agents.connection(),
	}
	for _, shoot := range p.shoots() {
		state.MaxNodes = int(shoot.Spec.Provider.Workers[0].Maximum)
		state.Hibernated = shoot.Status.IsHibernated
	}

	if names := p.administrators.Load(); names != nil && remaining > 0 {
		state.Administrators = strings.Join(*names, ", ")
		order := p.recordedOrder(p.shoots()[0].Name)
		state.RecordedMaxNodes = order.ClusterConfig.GardenerConfig.AutoScalerMax

		if order.KymaConfig != nil {
			state.RecordedKyma = order.KymaConfig.Version
		}
	}

	state.Kyma, state.Services, state.HeldBrokers = p.kyma.report()
	if racy {
		state.Kyma = ""
	}

	return state
}

// recordedOrder returns the order in the row of the runtime whose Shoot has the given name.
func (p *provisioner) recordedOrder(shootName string) spec.Runtime {
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

// runtimeRequest sends a request for a runtime and returns the ID of the operation that the Provisioner starts.
type runtimeRequest func(p *provisioner, runtimeID string) (operationID string)

// provisionerScenario is a scenario of the crash matrix for one operation of a runtime.
type provisionerScenario struct {
	name, kind string
	// setup prepares the Provisioner, for example with a Director.
	setup []func(*provisioner)
	// provision orders the runtime.
	provision func(*provisioner) (operationID, runtimeID string)
	// duringCreation sends the request once Gardener has had time to create the cluster, without waiting for the operation that
	// creates the runtime. The fault determines how far this operation has progressed.
	duringCreation bool
	// before lists requests whose operations succeed before faults are injected.
	before []runtimeRequest
	// during, if set, is a request that the scenario sends before its main request. The operation of during is changing the
	// cluster when the main request follows; the fault determines how far the operation has progressed.
	during runtimeRequest
	// request is the main request. The outcome of its operation must not depend on the fault. If request is nil, provision is
	// the main request.
	request runtimeRequest
}

func (s provisionerScenario) script(p *provisioner, run *provisionerRun) (operationIDs []string) {
	faultsFromStart := s.request == nil || s.duringCreation
	if faultsFromStart {
		run.InjectFaults()
	}

	id, runtimeID := s.provision(p)

	switch {
	case s.duringCreation:
		run.Sleep(creation)
	case !faultsFromStart:
		run.Complete(id)

		for _, each := range s.before {
			run.Complete(each(p, runtimeID))
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

// newProvisionerScenarios returns scenarios for the crash matrix. Each run of a scenario gets a new database.
func newProvisionerScenarios(t *testing.T, memory *fakegarden.Memory, open database, scenarios ...provisionerScenario) []crashtest.Scenario[operation.Data] {
	t.Helper()

	expected := expectations(t, "provisioner.yaml")
	built := make([]crashtest.Scenario[operation.Data], 0, len(scenarios))

	for _, each := range scenarios {
		racy := each.duringCreation || each.during != nil

		built = append(built, crashtest.Scenario[operation.Data]{Name: each.name, Kind: each.kind, Expected: expected[each.name], Open: func(t *testing.T) crashtest.Env[operation.Data] {
			t.Helper()

			p := newProvisioner(t, open(t), memory)
			for _, prepare := range each.setup {
				prepare(p)
			}

			return crashtest.Env[operation.Data]{
				Store: p.operations, Processes: p.processes, Upstream: func() any { return p.state(racy) }, AnyData: racy,
				Script: func(run *provisionerRun) []string { return each.script(p, run) },
			}
		}})
	}

	return built
}

func (p *provisioner) hibernate(runtimeID string) string {
	return p.sendMutation(p.service.Hibernate, "sleep", runtimeID)
}

func (p *provisioner) wakeUp(runtimeID string) string {
	return p.sendMutation(p.service.WakeUp, "wake", runtimeID)
}

func (p *provisioner) rollBack(runtimeID string) string {
	rollBack := func(ctx context.Context, caller orders.Caller, runtimeID string) (operation.Status, error) {
		return p.service.RollBackUpgrade(ctx, caller, runtimeID, nil)
	}

	return p.sendMutation(rollBack, "back", runtimeID)
}

func provisionerScenarios(t *testing.T, memory *fakegarden.Memory, open database) []crashtest.Scenario[operation.Data] {
	t.Helper()

	type p = *provisioner

	registered := []func(p){withDirector}

	return newProvisionerScenarios(t, memory, open,
		provisionerScenario{name: "provision-with-kyma", kind: operation.KindProvision, setup: registered, provision: p.provisionWithKyma},
		provisionerScenario{name: "upgrade-kyma", kind: operation.KindUpgrade, provision: p.provisionWithKyma, request: p.upgradeKyma},
		provisionerScenario{name: "upgrade-runtime", kind: operation.KindUpgradeRuntime, provision: p.provisionWithKyma, request: p.upgradeRuntime},
		provisionerScenario{
			name: "roll-back-kyma", kind: operation.KindRollBack,
			provision: p.provisionWithKyma, before: []runtimeRequest{p.upgradeKyma}, request: p.rollBack,
		},
		provisionerScenario{name: "deprovision-with-kyma", kind: operation.KindDeprovision, provision: p.provisionWithKyma, request: p.deprovision},
		provisionerScenario{
			name: "deprovision-during-kyma-upgrade", kind: operation.KindDeprovision,
			provision: p.provisionWithKyma, during: p.upgradeKyma, request: p.deprovision,
		},
		provisionerScenario{name: "provision", kind: operation.KindProvisionNoInstall, provision: p.provision},
		provisionerScenario{name: "provision-registered", kind: operation.KindProvisionNoInstall, setup: registered, provision: p.provision},
		provisionerScenario{name: "upgrade-shoot", kind: operation.KindUpgradeShoot, provision: p.provision, request: p.upgrade},
		provisionerScenario{
			name: "deprovision-during-upgrade", kind: operation.KindUpgradeShoot,
			provision: p.provision, during: p.upgrade, request: p.deprovision,
		},
		provisionerScenario{name: "hibernate", kind: operation.KindHibernate, provision: p.provision, request: p.hibernate},
		provisionerScenario{
			name: "wake-up", kind: operation.KindWakeUp,
			provision: p.provision, before: []runtimeRequest{p.hibernate}, request: p.wakeUp,
		},
		provisionerScenario{
			name: "reconnect-agent", kind: operation.KindReconnectRuntime,
			setup: registered, provision: p.provisionWithKyma, request: p.reconnect,
		},
		provisionerScenario{name: "deprovision", kind: operation.KindDeprovisionNoInstall, provision: p.provision, request: p.deprovision},
		provisionerScenario{
			name: "deprovision-registered", kind: operation.KindDeprovisionNoInstall,
			setup: registered, provision: p.provision, request: p.deprovision,
		},
		provisionerScenario{
			name: "deprovision-during-creation", kind: operation.KindDeprovisionNoInstall,
			provision: p.provision, duringCreation: true, request: p.deprovision,
		},
	)
}
