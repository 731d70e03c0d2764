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

// provisioner is the Provisioner's database, its API and the garden that it works in.
type provisioner struct {
	*gardener

	provisionerRows

	service *orders.Service
	// director is nil where runtimes are not registered.
	director *simulator.Director
	// administrators are those who have rights in the cluster.
	administrators atomic.Pointer[[]string]
	// kyma is what is installed in the cluster.
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

// handler is the API.
func (p *provisioner) handler() http.Handler {
	return graph.NewHandler(graph.Options{
		Service: p.service, Log: logging.Discard(), Endpoint: "/graphql",
	})
}

// processes are what a replica of the Provisioner registers.
func (p *provisioner) processes(line *crashtest.Proxy) []process.Process[operation.Data] {
	config := service.DefaultConfig()
	config.Gardener.Project = fakegarden.DefaultProject
	config.Gardener.PollInterval = 5 * time.Second

	parts := service.Parts{
		Shoots: gardenerclient.New(p.by(line), p.namespace), Clusters: insides{p, line}, Runtimes: runtimeRows{p.runtimes, line},
		Releases: releases{}, Installer: installer{&p.kyma, line},
		Agents: agentsOf{p.agents, line},
	}
	if p.director != nil {
		client := p.directorBy(line)
		parts.Director, parts.Tokens = client, client
	}

	return service.Processes(config, parts)
}

// runtimeRows are the Provisioner's rows of runtimes, at the end of a replica's line.
type runtimeRows struct {
	store *runtimes.Store
	line  *crashtest.Proxy
}

// Configured implements processes.Runtimes.
func (r runtimeRows) Configured(ctx context.Context, id string, configuration json.RawMessage, position int64) error {
	return r.line.Call(ctx, "Configured", func(ctx context.Context) error {
		return r.store.Configured(ctx, id, configuration, position)
	})
}

// insides are the clusters' own API servers, at the end of a replica's line.
type insides struct {
	provisioner *provisioner
	line        *crashtest.Proxy
}

// SetAdministrators implements processes.Clusters.
func (i insides) SetAdministrators(ctx context.Context, _ string, users []string) error {
	err := i.line.Call(ctx, "SetAdministrators", func(context.Context) error {
		i.provisioner.administrators.Store(&users)

		return nil
	})
	if err != nil {
		return failure.Wrap(failure.Transient, err, "the cluster does not answer")
	}

	return nil
}

// MarkDeleted implements processes.Runtimes.
func (r runtimeRows) MarkDeleted(ctx context.Context, id string, at time.Time) error {
	return r.line.Call(ctx, "MarkDeleted", func(ctx context.Context) error { return r.store.MarkDeleted(ctx, id, at) })
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

// upgrade orders other machines, another identity provider and another administrator.
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

// sleeping orders that the cluster is put to sleep, or woken.
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

// order asks for a cluster of the name.
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

// clusters is what there is outside of the Provisioner.
type clusters struct {
	// Made counts the clusters that were ever made, unless it is a matter of chance whether there was one.
	Made     int
	Left     int
	Runtimes int
	// Beside counts what stands beside Shoots.
	Beside int
	// Machines is the limit of machines that Gardener knows, Recorded the one that the runtime's row tells; 0 without a cluster.
	Machines, Recorded int
	Administrators     string
	Asleep             bool
	// Kyma is what is installed, RecordedKyma the version in the runtime's row. Services are those that the cluster has from outside,
	// Held the service brokers that do not go by themselves.
	Kyma, RecordedKyma string
	Services, Held     int
	Agent              connection
	// Registered is what Director knows.
	Registered []string
}

// removeOrphans does what the Provisioner does every ten minutes, and gives Gardener the time that it takes.
func (p *provisioner) removeOrphans() {
	p.Helper()

	ctx, stop := context.WithTimeout(p.Context(), 3*deletion)
	defer stop()

	if err := service.RemoveOrphans(ctx, p.runtimes, gardenerclient.New(p, p.namespace), logging.Discard()); err != nil {
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
		p.Errorf("there were %d clusters at the same time", most)
	}

	if chance {
		made = 0
	}

	live, err := storage.Get[int](p.Context(), p.db.Reader(), `SELECT count(*) FROM runtimes WHERE deleted_at IS NULL`)
	if err != nil {
		p.Fatal(err)
	}

	told := clusters{
		Made: made, Left: left, Runtimes: live, Beside: len(p.beside()), Registered: p.registered(), Agent: p.agents.connection(),
	}
	for _, shoot := range p.shoots() {
		told.Machines = int(shoot.Spec.Provider.Workers[0].Maximum)
		told.Asleep = shoot.Status.IsHibernated
	}

	if names := p.administrators.Load(); names != nil && left > 0 {
		told.Administrators = strings.Join(*names, ", ")
		order := p.recorded(p.shoots()[0].Name)
		told.Recorded = order.ClusterConfig.GardenerConfig.AutoScalerMax

		if order.KymaConfig != nil {
			told.RecordedKyma = order.KymaConfig.Version
		}
	}

	told.Kyma, told.Services, told.Held = p.kyma.tell()
	if chance {
		told.Kyma = ""
	}

	return told
}

// recorded is the order in the row of the one runtime.
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

type provisionerPlay = crashtest.Run[operation.Data]

// sceneOf makes a scene on a new database. In some it is a matter of chance how far the creation gets that is ended.
type sceneOf func(name, kind string, chance bool, tell func(p *provisioner, play *provisionerPlay) []string, with ...func(p *provisioner)) crashtest.Scenario[operation.Data]

func provisionerScenes(memory *fakegarden.Memory, open database) []crashtest.Scenario[operation.Data] {
	scene := func(name, kind string, chance bool, tell func(p *provisioner, play *provisionerPlay) []string, with ...func(p *provisioner)) crashtest.Scenario[operation.Data] {
		return crashtest.Scenario[operation.Data]{Name: name, Kind: kind, Open: func(t *testing.T) crashtest.Env[operation.Data] {
			t.Helper()

			p := newProvisioner(t, open(t), memory)
			for _, each := range with {
				each(p)
			}

			return crashtest.Env[operation.Data]{
				Store: p.operations, Processes: p.processes, Upstream: func() any { return p.clusters(chance) }, AnyData: chance,
				Script: func(play *provisionerPlay) []string { return tell(p, play) },
			}
		}}
	}

	provision := func(p *provisioner, play *provisionerPlay) []string {
		play.InjectFaults()

		id, _ := p.order()
		play.Await(id)

		return []string{id}
	}
	deprovision := func(p *provisioner, play *provisionerPlay) []string {
		made, runtimeID := p.order()
		play.Await(made)
		play.InjectFaults()

		id := p.remove(runtimeID)
		play.Await(id)

		return []string{id}
	}

	return append(kymaScenes(scene), []crashtest.Scenario[operation.Data]{
		scene("provision", operation.KindProvisionNoInstall, false, provision),
		scene("provision-registered", operation.KindProvisionNoInstall, false, provision, withDirector),
		scene("upgrade-shoot", operation.KindUpgradeShoot, false, func(p *provisioner, play *provisionerPlay) []string {
			made, runtimeID := p.order()
			play.Await(made)
			play.InjectFaults()

			id := p.upgrade(runtimeID)
			play.Await(id)

			return []string{id}
		}),
		scene("deprovision-during-upgrade", operation.KindUpgradeShoot, true, func(p *provisioner, play *provisionerPlay) []string {
			made, runtimeID := p.order()
			play.Await(made)
			play.InjectFaults()
			p.upgrade(runtimeID)
			play.Sleep(change)

			id := p.remove(runtimeID)
			play.Await(id)

			return []string{id}
		}),
		scene("hibernate", operation.KindHibernate, false, func(p *provisioner, play *provisionerPlay) []string {
			made, runtimeID := p.order()
			play.Await(made)
			play.InjectFaults()

			id := p.sleeping(p.service.Hibernate, "sleep", runtimeID)
			play.Await(id)

			return []string{id}
		}),
		scene("wake-up", operation.KindWakeUp, false, func(p *provisioner, play *provisionerPlay) []string {
			made, runtimeID := p.order()
			play.Await(made)
			play.Await(p.sleeping(p.service.Hibernate, "sleep", runtimeID))
			play.InjectFaults()

			id := p.sleeping(p.service.WakeUp, "wake", runtimeID)
			play.Await(id)

			return []string{id}
		}),
		scene("reconnect-agent", operation.KindReconnectRuntime, false, func(p *provisioner, play *provisionerPlay) []string {
			made, runtimeID := p.orderWithKyma()
			play.Await(made)
			play.InjectFaults()

			id := p.reconnect(runtimeID)
			play.Await(id)

			return []string{id}
		}, withDirector),
		scene("deprovision", operation.KindDeprovisionNoInstall, false, deprovision),
		scene("deprovision-registered", operation.KindDeprovisionNoInstall, false, deprovision, withDirector),
		scene("deprovision-during-creation", operation.KindDeprovisionNoInstall, true, func(p *provisioner, play *provisionerPlay) []string {
			play.InjectFaults()

			_, runtimeID := p.order()
			play.Sleep(creation)

			id := p.remove(runtimeID)
			play.Await(id)

			return []string{id}
		}),
	}...)
}
