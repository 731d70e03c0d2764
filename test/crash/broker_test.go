package crash

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/cleanup"
	"github.com/environment-broker/environment-broker/broker/expiry"
	"github.com/environment-broker/environment-broker/broker/kyma"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/broker/upgrade"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/clients/avs"
	"github.com/environment-broker/environment-broker/internal/clients/edp"
	"github.com/environment-broker/environment-broker/internal/clients/ias"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeavs"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecleanup"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeedp"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeias"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakereconciler"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/crashtest"
	"github.com/environment-broker/environment-broker/process/deprovisioning"
	"github.com/environment-broker/environment-broker/resources"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	instanceID   = "0f5b2c7e-1111-4222-8333-444455556666"
	instancePath = "/v2/service_instances/" + instanceID
	bindingPath  = instancePath + "/service_bindings/one"

	// ownKubeconfig is the kubeconfig of a tenant's own cluster. The scenarios never call that cluster.
	ownKubeconfig = `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "https://own.example.com"}}],
		users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`

	// unbindDelay is the time between a bind and its unbind. The unbind arrives while the binding's ServiceAccount is being created.
	unbindDelay = 5500 * time.Millisecond
	// kymaVersion is the Kyma version that plan preview installs.
	kymaVersion = "1.0.0"
	// claimDelay is the time between an order and the deletion of the instance. The deletion arrives while an account is being
	// claimed.
	claimDelay = 6300 * time.Millisecond
	// reconcilerDelay is the time between an order and the deletion of the instance. The deletion arrives while the Reconciler is
	// installing Kyma.
	reconcilerDelay = 62300 * time.Millisecond
	// pollInterval is the interval at which the broker polls the Provisioner.
	pollInterval = 5 * time.Second
)

// brokerFixture is a broker with its database and API. Its Provisioner has a separate database and one replica without faults.
type brokerFixture struct {
	*testing.T
	brokerRows

	plans       *catalog.Catalog
	accounts    *accounts
	api         http.Handler
	provisioner *provisioner
	graphql     http.Handler
	cleaner     cleanup.Cleaner
	edp         *fakeedp.EDP
	ias         *fakeias.IAS
	avs         *fakeavs.AvS
	reconciler  *fakereconciler.Reconciler
	// installer is the system that installs Kyma.
	installer environment.KymaInstaller
	// pool is nil if the configuration assigns a fixed account to each provider.
	pool *pool
	// controlPlane is nil if the Provisioner installs Kyma.
	controlPlane *controlPlane
	hook         *fakecleanup.Hook
	// replaced is the number of kubeconfigs that were issued before those in other systems became due.
	replaced int
}

func newBroker(t *testing.T, db *storage.DB, garden *fakegarden.Memory, plans *catalog.Catalog) *brokerFixture {
	t.Helper()

	f := &brokerFixture{
		T: t, plans: plans, brokerRows: openBroker(t, db, storagetest.Keys(t)), accounts: &accounts{existing: map[string]bool{}, services: 2},
		provisioner: newProvisioner(t, storagetest.SQLite(t), garden), edp: fakeedp.New(), ias: fakeias.New(), avs: fakeavs.New(),
		reconciler: fakereconciler.New(), hook: fakecleanup.New(),
	}
	f.ias.Add(instanceID)
	f.cleaner = cleanup.Cleaner{
		DB: db, Leftovers: f.leftovers, Objects: f.objects, Operations: f.operations, Clock: clock.RealClock{}, Wake: func() {},
		Recorder: audit.NewRecorder(f.auditLog, db, clock.RealClock{}, logging.Discard()),
		Finished: func(steps []string) []string {
			processes := f.processes(crashtest.Transparent())
			at := slices.IndexFunc(processes, func(each process.Process[environment.Data]) bool { return each.Kind == environment.KindCleanup })

			return deprovisioning.FinishedStages(processes[at], steps)
		},
	}
	f.graphql = f.provisioner.handler()
	f.provisioner.run()
	f.api = broker.NewHandler(broker.Options{
		DB: db, Instances: f.instances, Operations: f.operations, Bindings: f.bindings, Leftovers: f.leftovers, Objects: f.objects, BindingLimit: 10, Catalog: plans,
		Wake: func() {}, Clock: clock.RealClock{}, Log: logging.Discard(),
		Recorder: audit.NewRecorder(f.auditLog, db, clock.RealClock{}, logging.Discard()), Authorizer: auth.NewAuthorizer(auth.NoAuthentication{}),
		DefaultRegion: "cf-eu10", Periods: expiry.Periods{"trial": 0},
	})

	return f
}

// run executes the Provisioner's operations until the test ends.
func (p *provisioner) run() {
	p.Helper()

	ctx, stop := context.WithCancel(context.WithoutCancel(p.Context()))
	ended := make(chan error, 1)

	config := process.DefaultConfig()
	config.Poll = 5 * time.Second

	engine, err := process.NewEngine(p.operations, config, clock.RealClock{}, logging.Discard(), p.processes(crashtest.Transparent())...)
	if err != nil {
		p.Fatal(err)
	}

	go func() {
		time.Sleep(370 * time.Millisecond) // prevents polls at the same time as other events, because the order of simultaneous events is random
		ended <- engine.Run(ctx)
	}()

	p.Cleanup(func() {
		stop()

		if err := <-ended; err != nil {
			p.Error(err)
		}
	})
}

// config returns the broker's configuration.
func (f *brokerFixture) config() service.Config {
	config := service.DefaultConfig()
	config.AvS, config.Gardener.ShootDomain = avsConfig(), "example.com"
	config.DirectorDashboard = true
	config.Reconciler, config.Kyma.Installer = reconcilerConfig(), f.installer

	return config
}

// processes returns the processes that a replica of the broker registers.
func (f *brokerFixture) processes(proxy *crashtest.Proxy) []process.Process[environment.Data] {
	return service.Processes(f.config(), f.parts(proxy))
}

// access gives a replica access to runtimes and to the Provisioner, which issues kubeconfigs.
func (f *brokerFixture) access(proxy *crashtest.Proxy) proxiedAccess {
	f.Helper()

	client, err := provisionerclient.New(provisionerclient.Options{
		URL: "http://provisioner.example.com/graphql", HTTPClient: proxy.Client(f.graphql, operationName),
	})
	if err != nil {
		f.Fatal(err)
	}

	return proxiedAccess{client, proxy, f.accounts}
}

// parts returns the dependencies of a replica's processes and background work. They make their calls through the replica's proxy.
func (f *brokerFixture) parts(proxy *crashtest.Proxy) service.Parts {
	var accounts service.Accounts
	if f.pool != nil {
		accounts = f.pool.behind(proxy)
	}

	config, access := f.config(), f.access(proxy)

	parts := service.Parts{
		AvS:         avs.New(config.AvS, proxy.Client(f.avs, avsOperation).Transport),
		Objects:     proxiedObjects{service.NewObjects(f.objects, clock.RealClock{}), proxy},
		EDP:         edp.New(edpConfig(), proxy.Client(f.edp, edpOperation).Transport),
		Reconciler:  reconciler.New(config.Reconciler, proxy.Client(f.reconciler, reconcilerOperation).Transport),
		IAS:         ias.New(iasConfig(), proxy.Client(f.ias, iasOperation).Transport),
		Provisioner: access.provisioner,
		Accounts:    accounts,

		Notifications: proxiedNotifications{service.NewNotifications(f.eventLog, clock.RealClock{}), proxy},

		Orchestrations: proxiedOrchestrations{orchestration.Conductor{
			DB: f.db, Orchestrations: f.orchestrations, Clock: clock.RealClock{},
			Planner: orchestration.Planner{Upgrader: f.upgrader(), StateOf: operator.StateOf},
		}, proxy},

		Rows:      proxiedRows{service.NewRows(f.tables(), clock.RealClock{}), proxy},
		Access:    access,
		Kyma:      kyma.Kyma{Catalog: f.plans, Version: kymaVersion},
		Pace:      func(time.Duration) time.Duration { return pollInterval },
		FeedAlive: func() bool { return true },
		Kind:      func() provisionerclient.Kind { return provisionerclient.KindOurs },
	}

	if f.controlPlane != nil {
		f.controlPlane.connect(&parts, proxy)
	}

	return parts
}

// sendAWS sends a request for the instance, with plan aws, and returns the ID of the accepted operation.
func (f *brokerFixture) sendAWS(method string) string {
	f.Helper()

	return f.sendOrder(method, instancePath, harness.PlanAWS, `{}`)
}

// sendOrder sends a request for an instance or a binding, with the given plan, and returns the ID of the accepted operation.
func (f *brokerFixture) sendOrder(method, path, plan, parameters string) string {
	f.Helper()

	return f.send(method, path+"?accepts_incomplete=true&service_id="+harness.ServiceID+"&plan_id="+plan, fmt.Sprintf(
		`{"service_id": %q, "plan_id": %q, "parameters": %s,
		"organization_guid": "organization", "space_guid": "space", "context": {"user_id": "admin@example.com"}}`, harness.ServiceID, plan, parameters))
}

func (f *brokerFixture) upgrader() upgrade.Upgrader {
	return upgrade.Upgrader{
		DB: f.db, Instances: f.instances, Operations: f.operations, Catalog: f.plans, Wake: func() {}, Clock: clock.RealClock{},
	}
}

// orchestrate orders an upgrade of all clusters, and returns the ID of the conductor.
func (f *brokerFixture) orchestrate() string {
	f.Helper()

	id, err := orchestration.Orders{
		DB: f.db, Orchestrations: f.orchestrations, Operations: f.operations, Wake: func() {}, Clock: clock.RealClock{},
		Recorder: audit.NewRecorder(f.auditLog, f.db, clock.RealClock{}, logging.Discard()),
	}.Create(f.Context(), environment.KindUpgradeCluster, fleet.Parameters{
		Targets:    fleet.Targets{Include: []fleet.Target{{Target: "all"}}},
		Kubernetes: &fleet.Kubernetes{KubernetesVersion: "1.36.3"},
	})
	if err != nil {
		f.Fatal(err)
	}

	conductor, err := f.operations.Latest(f.Context(), f.db.Reader(), environment.OrchestrationKey(id), environment.KindOrchestrate)
	if err != nil {
		f.Fatal(err)
	}

	return conductor.ID
}

// upgrade orders an upgrade, as an operator does, and returns the ID of the operation.
func (f *brokerFixture) upgrade(kind, version string) string {
	f.Helper()

	accepted, err := f.upgrader().Upgrade(f.Context(), upgrade.Order{InstanceID: instanceID, Kind: kind, Version: version})
	if err != nil {
		f.Fatal(err)
	}

	return accepted.OperationID
}

// sendUpdate sends an update with the given JSON fields and returns the ID of the accepted operation.
func (f *brokerFixture) sendUpdate(fields string) string {
	f.Helper()

	return f.send(http.MethodPatch, instancePath+"?accepts_incomplete=true", fmt.Sprintf(`{"service_id": %q, %s}`, harness.ServiceID, fields))
}

func (f *brokerFixture) send(method, path, body string) string {
	f.Helper()

	recorder := f.call(method, path, body)

	var accepted struct {
		Operation string `json:"operation"`
	}

	if err := json.Unmarshal(recorder.Body.Bytes(), &accepted); err != nil || recorder.Code != http.StatusAccepted {
		f.Fatalf("%s returned %d %s, %v", method, recorder.Code, recorder.Body, err)
	}

	return accepted.Operation
}

// call sends a request to the broker as a platform does.
func (f *brokerFixture) call(method, path, body string) *httptest.ResponseRecorder {
	f.Helper()

	request := httptest.NewRequestWithContext(f.Context(), method, path, bytes.NewBufferString(body))
	request.Header.Set("X-Broker-Api-Version", "2.17")
	request.Header.Set("Content-Type", "application/json")

	recorder := httptest.NewRecorder()
	f.api.ServeHTTP(recorder, request)

	return recorder
}

// brokerState is the state of the broker's rows and upstreams. It must be the same at the end of every run of a scenario.
type brokerState struct {
	Provisioner provisionerState
	Instances   int
	// Bindings contains the states in the bindings' rows. Accounts is the number of ServiceAccounts in the runtime, and Orphans is
	// the number of ServiceAccounts without a row.
	Bindings          []string
	Accounts, Orphans int
	// ClientSecret is the Service Manager client secret in the runtime.
	ClientSecret string
	// Services is the number of service instances in the runtime, or the number that a suspension has left. It is 0 after a
	// deletion.
	Services int
	// Suspended and AutoScalerMax are values of the instance's row.
	Suspended     bool
	AutoScalerMax int
	// Dashboard is the console URL in the instance's row, which comes from Director.
	Dashboard string
	// Kyma is the Kyma version with the modules in the instance's row, and Kubernetes is the cluster's version.
	Kyma, Kubernetes string
	// Runtime reports whether the instance's runtime exists in the Provisioner.
	Runtime bool
	// ServiceProviders lists the service providers in IAS.
	ServiceProviders []string
	// DataTenants contains the data tenants in EDP. OutsideObjects lists the recorded states of objects in other systems.
	DataTenants    map[string]map[string]string
	OutsideObjects []string
	Evaluations    evaluations
	// Notifications lists the notifications about upgrades, in the order in which they are sent.
	Notifications []string
	// Clusters lists the clusters in the Reconciler. Configurations is the number of stored configurations that the Reconciler has
	// accepted.
	Clusters       []string
	Configurations int
	// Leftovers lists the steps of deletions that were not completed.
	Leftovers []string
	// Unfinished is the number of the Provisioner's operations that have not ended.
	Unfinished int
	Pool       poolState
	// ControlPlane lists the objects in the control plane, without the IDs of runtimes.
	ControlPlane []string
	Background   backgroundState
}

func (f *brokerFixture) state(racy bool) brokerState {
	f.Helper()

	count := func(db *storage.DB, query string, args ...any) int {
		count, err := storage.Get[int](f.Context(), db.Reader(), query, args...)
		if err != nil {
			f.Fatal(err)
		}

		return count
	}

	found := brokerState{
		Provisioner: f.provisioner.state(racy),
		Instances:   count(f.db, `SELECT count(*) FROM instances`),
		Unfinished:  count(f.provisioner.db, `SELECT count(*) FROM operations WHERE finished_at IS NULL`),
		DataTenants: f.edp.Tenants(), ServiceProviders: f.ias.Holds(), Evaluations: f.evaluations(),
		Clusters: f.clusters(), Configurations: count(f.db, `SELECT count(*) FROM outside_configurations`), Background: f.backgroundState(),
	}

	if f.pool != nil {
		found.Pool = f.pool.state(racy)
	}

	if f.controlPlane != nil {
		found.ControlPlane = f.controlPlane.state()
	}

	found.ClientSecret = f.accounts.clientSecret

	for _, id := range f.accounts.list() {
		found.Accounts++
		found.Orphans += 1 - count(f.db, `SELECT count(*) FROM bindings WHERE id = ?`, id)
	}

	states, err := storage.Select[string](f.Context(), f.db.Reader(), `SELECT state FROM bindings ORDER BY created_at`)
	if err != nil {
		f.Fatal(err)
	}

	found.Bindings = states

	if found.OutsideObjects, err = storage.Select[string](f.Context(), f.db.Reader(),
		`SELECT state FROM outside_objects WHERE system <> 'avs' ORDER BY system`); err != nil {
		f.Fatal(err)
	}

	if found.Leftovers, err = storage.Select[string](f.Context(), f.db.Reader(), `SELECT steps FROM leftovers ORDER BY id`); err != nil {
		f.Fatal(err)
	}

	found.Notifications = f.notifications(racy)

	left := found.Evaluations
	gone := found.Instances+len(found.Leftovers) == 0 && len(left.Recorded)+len(found.DataTenants)+len(found.ControlPlane) > 0

	if racy { // a lost response may leave an evaluation
		found.Leftovers = nil
	}

	if len(left.Unknown)+len(left.Missing) > 0 || gone {
		f.Errorf("%d instances, but other systems have %+v, %v and %v", found.Instances, left, found.DataTenants, found.ControlPlane)
	}

	if found.Instances == 1 {
		row, err := f.instances.Get(f.Context(), f.db.Reader(), instanceID)
		if err != nil {
			f.Fatal(err)
		}

		found.Suspended, found.AutoScalerMax = row.Suspended, row.Request.Cluster.AutoScalerMax
		found.Kubernetes, found.Dashboard = row.Request.Cluster.KubernetesVersion, row.DashboardURL
		if installed := row.Request.Cluster.Kyma; installed != nil {
			found.Kyma = installed.Version + " " + strings.Join(installed.Modules, " ")
		}

		found.Runtime = count(f.provisioner.db, `SELECT count(*) FROM runtimes WHERE id = ? AND deleted_at IS NULL`, row.RuntimeID) == 1
		if found.Runtime || found.Suspended {
			found.Services = f.accounts.services
		}

		version, _, _ := strings.Cut(found.Kyma, " ")
		if f.installer == environment.InstallerReconciler && (len(found.Clusters) != 1 || !strings.HasPrefix(found.Clusters[0], version+" ")) {
			f.Errorf("the instance has Kyma %s, the Reconciler %v", version, found.Clusters)
		}

		if found.Runtime && row.Provider != "" && found.Dashboard != console {
			f.Errorf("the dashboard is %q", found.Dashboard)
		}
	}

	return found
}

type brokerRun = crashtest.Run[environment.Data]

// ownParameters returns the parameters that order an instance of plan own_cluster.
func ownParameters() string {
	return fmt.Sprintf(`{"kubeconfig": %q, "shootName": "own", "shootDomain": "own.example.com"}`,
		base64.StdEncoding.EncodeToString([]byte(ownKubeconfig)))
}

// request sends a request as a platform or an operator does, and returns the ID of the operation that the broker starts.
type request func(*brokerFixture) (operationID string)

// brokerScenario is a scenario of the crash matrix for one request to the broker, or for background work.
type brokerScenario struct {
	name, kind string
	// before lists requests whose operations succeed before faults are injected.
	before []request
	// during, if set, is a request that the scenario sends before its main request. The operation of during is in progress when
	// the main request follows after the delay; the fault determines how far the operation has progressed.
	during request
	delay  time.Duration
	// meanwhile, if set, is called after the main request, with the delay.
	meanwhile func(*brokerFixture)
	// pooled runs the scenario with an account pool.
	pooled bool
	// managed runs the scenario with Lifecycle Manager instead of the Provisioner's Kyma.
	managed bool
	// installer is the system that installs Kyma. If it is empty, the Provisioner installs Kyma.
	installer environment.KymaInstaller
	// request is the main request. The outcome of its operation must not depend on the fault. It is nil if the scenario tests background work.
	request request
	// background, if set, is the background work of each replica. prepare gives it something to do before faults are injected, and until
	// is true once it is done.
	background background
	prepare    func(*brokerFixture)
	until      func(*brokerFixture) bool
	// gone requires that no system has anything of the tenant left afterwards.
	gone bool
}

// wantNothing checks that no system has anything of the tenant left. The comparison includes all fields of the state, so that the
// check covers new systems too.
func (f *brokerFixture) wantNothing(found brokerState) {
	f.Helper()

	// A dirty account keeps the label of its tenant until it is cleaned up.
	want := brokerState{
		Provisioner: provisionerState{Created: found.Provisioner.Created}, Pool: poolState{Tenants: found.Pool.Dirty, Dirty: found.Pool.Dirty},
		Background: backgroundState{Released: found.Background.Released}, // the audit log is kept
	}
	if diff := cmp.Diff(want, found, cmpopts.EquateEmpty()); diff != "" {
		f.Errorf("something is left of the tenant, -want +got:\n%s", diff)
	}
}

// script runs the scenario.
func (s brokerScenario) script(f *brokerFixture, run *brokerRun) (operationIDs []string) {
	for _, each := range s.before {
		run.Complete(each(f))
	}

	if s.prepare != nil {
		s.prepare(f)
	}

	run.InjectFaults()

	if s.request == nil {
		run.Until("the background work is done", func() bool { return s.until(f) })

		return nil
	}

	if s.during != nil {
		s.during(f)
		run.Sleep(s.delay)
	}

	id := s.request(f)

	if s.meanwhile != nil {
		run.Sleep(s.delay)
		s.meanwhile(f)
	}

	run.Await(id)

	return []string{id}
}

// jobs returns a function that returns the background work of a replica, or nil if the scenario has none.
func (s brokerScenario) jobs(f *brokerFixture) func(*crashtest.Proxy) []lifecycle.Part {
	if s.background == nil {
		return nil
	}

	return func(proxy *crashtest.Proxy) []lifecycle.Part { return s.background(f, proxy) }
}

// newBrokerScenarios returns scenarios for the crash matrix. Each run of a scenario gets new databases.
func newBrokerScenarios(t *testing.T, garden *fakegarden.Memory, open database, scenarios ...brokerScenario) []crashtest.Scenario[environment.Data] {
	t.Helper()

	plans, err := catalog.Load(resources.Catalog(), catalog.Options{
		KubernetesVersion: "1.35.4", OperationTimeout: 24 * time.Hour, KymaVersion: kymaVersion,
	})
	if err != nil {
		t.Fatal(err)
	}

	expected := expectations(t, "broker.yaml")
	shootName := regexp.MustCompile(`c-[0-9a-f]{7}`)
	built := make([]crashtest.Scenario[environment.Data], 0, len(scenarios))

	for _, each := range scenarios {
		racy := each.during != nil

		// Nothing undoes a grant: `ebctl reconcile` reports ServiceAccounts without a binding.
		built = append(built, crashtest.Scenario[environment.Data]{Name: each.name, Kind: each.kind, UndoneByCaller: []string{"grant"}, Expected: expected[each.name], Open: func(t *testing.T) crashtest.Env[environment.Data] {
			t.Helper()

			offered := plans
			if each.managed {
				offered = managedPlans(t)
			}

			f := newBroker(t, open(t), garden, offered)
			if each.managed {
				f.controlPlane = newControlPlane(t)
			}
			f.installer = each.installer

			if each.pooled {
				f.pool = newPool(t, garden, f.claims)
			}

			return crashtest.Env[environment.Data]{
				Store: f.operations, Processes: f.processes, Upstream: func() any {
					found := f.state(racy)
					if each.gone {
						f.wantNothing(found)
					}

					return found
				},
				Background: each.jobs(f), AnyData: racy, Random: shootName, MaySkip: mayLose(racy),
				Script: func(run *brokerRun) []string { return each.script(f, run) },
			}
		}})
	}

	return built
}

// Requests of the scenarios.
func (f *brokerFixture) provision() string   { return f.sendAWS(http.MethodPut) }
func (f *brokerFixture) deprovision() string { return f.sendAWS(http.MethodDelete) }
func (f *brokerFixture) bind() string {
	return f.sendOrder(http.MethodPut, bindingPath, harness.PlanAWS, `{}`)
}

func (f *brokerFixture) unbind() string {
	return f.sendOrder(http.MethodDelete, bindingPath, harness.PlanAWS, `{}`)
}

func (f *brokerFixture) provisionKyma() string {
	return f.sendOrder(http.MethodPut, instancePath, harness.PlanPreview, `{}`)
}

// serviceManager returns the JSON field of a context with Service Manager credentials.
func serviceManager(clientSecret string) string {
	return fmt.Sprintf(`"context": {"user_id": "admin@example.com", "sm_operator_credentials": {
		"clientid": "client", "clientsecret": %q, "sm_url": "https://sm.example.com", "url": "https://tokens.example.com"}}`, clientSecret)
}

// provisionCredentials orders an instance with Service Manager credentials. rotate sends new credentials.
func (f *brokerFixture) provisionCredentials() string {
	return f.send(http.MethodPut, instancePath+"?accepts_incomplete=true", fmt.Sprintf(
		`{"service_id": %q, "plan_id": %q, "organization_guid": "organization", "space_guid": "space", %s}`,
		harness.ServiceID, harness.PlanAWS, serviceManager("first")))
}

func (f *brokerFixture) rotate() string { return f.sendUpdate(serviceManager("second")) }

// updateModules changes the cluster and its modules.
func (f *brokerFixture) updateModules() string {
	return f.sendUpdate(`"parameters": {"autoScalerMax": 30, "modules": {"list": [{"name": "serverless"}]}}`)
}

func (f *brokerFixture) update() string  { return f.sendUpdate(`"parameters": {"autoScalerMax": 30}`) }
func (f *brokerFixture) suspend() string { return f.sendUpdate(`"context": {"active": false}`) }
func (f *brokerFixture) resume() string  { return f.sendUpdate(`"context": {"active": true}`) }

func (f *brokerFixture) upgradeKyma() string {
	return f.upgrade(environment.KindUpgradeKyma, "1.1.0")
}

func (f *brokerFixture) upgradeCluster() string {
	return f.upgrade(environment.KindUpgradeCluster, "1.36.3")
}

func (f *brokerFixture) deprovisionKyma() string {
	return f.sendOrder(http.MethodDelete, instancePath, harness.PlanPreview, `{}`)
}

// leave deletes the instance while EDP and IAS reject all calls, so that the deletion gives up.
func (f *brokerFixture) leave() string {
	busy := simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 300, Times: -1}
	f.edp.Inject(busy)
	f.ias.Inject(busy)
	f.avs.Inject(busy)

	return f.deprovision()
}

// leaveReconciled is like leave, but for an instance with Kyma, and while the Reconciler, not EDP and IAS, rejects all calls.
func (f *brokerFixture) leaveReconciled() string {
	f.reconciler.Inject(simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 300, Times: -1})

	return f.deprovisionKyma()
}

// wantGone checks that the deleted instance no longer exists for its platform, although the deletion has left something behind.
func (f *brokerFixture) wantGone() {
	f.Helper()

	ids := "?accepts_incomplete=true&service_id=" + harness.ServiceID + "&plan_id=" + harness.PlanAWS

	for call, want := range map[string]int{
		http.MethodGet + " " + instancePath:                     http.StatusNotFound,
		http.MethodDelete + " " + instancePath + ids:            http.StatusGone,
		http.MethodGet + " " + instancePath + "/last_operation": http.StatusOK,
	} {
		method, path, _ := strings.Cut(call, " ")

		got := f.call(method, path, "")
		if got.Code != want || want == http.StatusOK && !strings.Contains(got.Body.String(), `"state":"succeeded"`) {
			f.Errorf("%s: got %d %s, want %d", call, got.Code, got.Body, want)
		}
	}
}

// cleanUp ends the rejections, and starts the cleanup of the leftover.
func (f *brokerFixture) cleanUp() string {
	f.Helper()

	if exists, err := f.instances.Exists(f.Context(), f.db.Reader(), instanceID); err != nil {
		f.Fatal(err)
	} else if !exists {
		f.wantGone()
	}

	f.edp.Reset()
	f.ias.Reset()
	f.avs.Reset()
	f.reconciler.Reset()

	id, err := storage.Get[string](f.Context(), f.db.Reader(), `SELECT id FROM leftovers`)
	if err != nil {
		f.Fatal(err)
	}

	cleanup, err := f.cleaner.Clean(f.Context(), id, "a test")
	if err != nil {
		f.Fatal(err)
	}

	return cleanup
}

// revive orders an instance with the ID of the deleted one.
func (f *brokerFixture) revive() string {
	f.edp.Reset()
	f.ias.Reset()
	f.avs.Reset()

	return f.provision()
}

func (f *brokerFixture) provisionTrial() string {
	return f.sendOrder(http.MethodPut, instancePath, harness.PlanTrial, `{}`)
}

func (f *brokerFixture) deprovisionTrial() string {
	return f.sendOrder(http.MethodDelete, instancePath, harness.PlanTrial, `{}`)
}

func (f *brokerFixture) provisionOwnCluster() string {
	return f.sendOrder(http.MethodPut, instancePath, harness.PlanOwnCluster, ownParameters())
}

func (f *brokerFixture) deprovisionOwnCluster() string {
	return f.sendOrder(http.MethodDelete, instancePath, harness.PlanOwnCluster, `{}`)
}

func brokerScenarios(t *testing.T, garden *fakegarden.Memory, open database) []crashtest.Scenario[environment.Data] {
	t.Helper()

	type f = *brokerFixture

	ready := []request{f.provision}

	return append(kymaResourceScenarios(t, garden, open), newBrokerScenarios(t, garden, open,
		brokerScenario{name: "provision", kind: environment.KindProvision, request: f.provision},
		brokerScenario{name: "provision-own-cluster", kind: environment.KindProvision, request: f.provisionOwnCluster},
		brokerScenario{
			name: "deprovision-own-cluster", kind: environment.KindDeprovision,
			before: []request{f.provisionOwnCluster}, request: f.deprovisionOwnCluster,
		},
		brokerScenario{name: "deprovision", kind: environment.KindDeprovision, before: ready, request: f.deprovision, gone: true},
		brokerScenario{name: "deprovision-left-over", kind: environment.KindDeprovision, before: ready, request: f.leave},
		brokerScenario{
			name: "cleanup", kind: environment.KindCleanup, before: []request{f.provision, f.leave}, request: f.cleanUp, gone: true,
		},
		brokerScenario{
			name: "cleanup-in-new-life", kind: environment.KindCleanup, before: []request{f.provision, f.leave, f.revive}, request: f.cleanUp,
		},
		brokerScenario{name: "bind", kind: environment.KindBind, before: ready, request: f.bind},
		brokerScenario{name: "unbind", kind: environment.KindUnbind, before: []request{f.provision, f.bind}, request: f.unbind},
		brokerScenario{
			name: "unbind-during-bind", kind: environment.KindUnbind,
			before: ready, during: f.bind, delay: unbindDelay, request: f.unbind,
		},
		brokerScenario{
			name: "deprovision-during-creation", kind: environment.KindDeprovision,
			during: f.provision, delay: creation, request: f.deprovision,
		},
		brokerScenario{name: "update", kind: environment.KindUpdate, before: ready, request: f.update},
		brokerScenario{name: "provision-credentials", kind: environment.KindProvision, request: f.provisionCredentials},
		brokerScenario{name: "rotate", kind: environment.KindUpdate, before: []request{f.provisionCredentials}, request: f.rotate},
		brokerScenario{name: "provision-kyma", kind: environment.KindProvision, request: f.provisionKyma},
		brokerScenario{
			name: "update-modules", kind: environment.KindUpdate, before: []request{f.provisionKyma}, request: f.updateModules,
		},
		brokerScenario{
			name: "deprovision-during-update", kind: environment.KindDeprovision,
			before: ready, during: f.update, delay: change, request: f.deprovision,
		},
		brokerScenario{
			name: "upgrade-kyma", kind: environment.KindUpgradeKyma, before: []request{f.provisionKyma}, request: f.upgradeKyma,
		},
		brokerScenario{name: "orchestrate", kind: environment.KindOrchestrate, before: ready, request: f.orchestrate},
		brokerScenario{name: "upgrade-cluster", kind: environment.KindUpgradeCluster, before: ready, request: f.upgradeCluster},
		brokerScenario{
			name: "deprovision-during-upgrade", kind: environment.KindDeprovision,
			before: []request{f.provisionKyma}, during: f.upgradeKyma, delay: change, request: f.deprovisionKyma,
		},
		brokerScenario{
			name: "provision-reconciler", kind: environment.KindProvision, installer: environment.InstallerReconciler, request: f.provisionKyma,
		},
		brokerScenario{
			name: "update-modules-reconciler", kind: environment.KindUpdate, installer: environment.InstallerReconciler,
			before: []request{f.provisionKyma}, request: f.updateModules,
		},
		brokerScenario{
			name: "upgrade-reconciler", kind: environment.KindUpgradeKyma, installer: environment.InstallerReconciler,
			before: []request{f.provisionKyma}, request: f.upgradeKyma,
		},
		brokerScenario{
			name: "deprovision-reconciler", kind: environment.KindDeprovision, installer: environment.InstallerReconciler,
			before: []request{f.provisionKyma}, request: f.deprovisionKyma, gone: true,
		},
		brokerScenario{
			name: "deprovision-reconciler-during-creation", kind: environment.KindDeprovision, installer: environment.InstallerReconciler,
			during: f.provisionKyma, delay: reconcilerDelay, request: f.deprovisionKyma,
		},
		brokerScenario{
			name: "cleanup-reconciler", kind: environment.KindCleanup, installer: environment.InstallerReconciler,
			before: []request{f.provisionKyma, f.leaveReconciled}, request: f.cleanUp, gone: true,
		},
		brokerScenario{name: "suspend", kind: environment.KindSuspend, before: []request{f.provisionTrial}, request: f.suspend},
		brokerScenario{name: "provision-pooled", kind: environment.KindProvision, pooled: true, request: f.provision},
		brokerScenario{name: "deprovision-pooled", kind: environment.KindDeprovision, pooled: true, before: ready, request: f.deprovision, gone: true},
		brokerScenario{
			name: "clean-account", pooled: true, background: cleaning, before: []request{f.provision, f.deprovision}, until: cleaned, gone: true,
		},
		brokerScenario{
			name: "renew-reconciler", installer: environment.InstallerReconciler, background: renewal,
			before: []request{f.provisionKyma}, prepare: f.renew, until: happened("renewed"),
		},
		brokerScenario{
			name: "repair-credentials", background: repair, before: []request{f.provisionCredentials}, prepare: f.change, until: happened("repaired"),
		},
		brokerScenario{
			name: "deprovision-pooled-during-creation", kind: environment.KindDeprovision, pooled: true,
			during: f.provision, delay: claimDelay, request: f.deprovision,
		},
		brokerScenario{
			name: "resume-pooled", kind: environment.KindResume, pooled: true,
			before: []request{f.provisionTrial, f.suspend}, request: f.resume,
		},
		brokerScenario{
			name: "resume", kind: environment.KindResume,
			before: []request{f.provisionTrial, f.suspend}, request: f.resume,
		},
	)...)
}

// deletionFaults is the largest share of faults that TestDeletionsOfTrials runs: one in nine. This small share is enough, because
// other scenarios test suspensions, resumptions and deletions separately.
const deletionFaults = 9

// TestDeletionsOfTrials runs the crash matrix for the deletion of an instance during its suspension and during its resumption.
func TestDeletionsOfTrials(t *testing.T) {
	t.Parallel()

	type f = *brokerFixture

	garden, s := newGarden(t), selected(t)

	crashtest.Sample(t, s.seed, max(s.every, deletionFaults), newBrokerScenarios(t, garden, storagetest.SQLite,
		brokerScenario{
			name: "during-suspension", kind: environment.KindDeprovision,
			before: []request{f.provisionTrial}, during: f.suspend, delay: change, request: f.deprovisionTrial,
		},
		brokerScenario{
			name: "during-resumption", kind: environment.KindDeprovision,
			before: []request{f.provisionTrial, f.suspend}, during: f.resume, delay: creation, request: f.deprovisionTrial,
		},
	)...)
}
