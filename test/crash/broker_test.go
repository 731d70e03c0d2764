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
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/expiry"
	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/crashtest"
	"github.com/environment-broker/environment-broker/resources"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	instanceID = "0f5b2c7e-1111-4222-8333-444455556666"
	instance   = "/v2/service_instances/" + instanceID
	access1    = instance + "/service_bindings/one"

	// ownKubeconfig is the kubeconfig of a tenant's own cluster, which the scenarios never call.
	ownKubeconfig = `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "https://own.example.com"}}],
		users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`

	// binding is the delay between a bind and its unbind, so that the unbind arrives while the account is being created.
	binding = 5500 * time.Millisecond
	// pace is the interval at which the broker polls the Provisioner.
	pace = 5 * time.Second
)

// brokerFixture is the broker's database and its API. Its Provisioner has its own database and one replica without faults.
type brokerFixture struct {
	*testing.T
	brokerRows

	accounts    *accounts
	api         http.Handler
	provisioner *provisioner
	graphql     http.Handler
}

func newBroker(t *testing.T, db *storage.DB, shared shared, offer *catalog.Catalog) *brokerFixture {
	t.Helper()

	f := &brokerFixture{
		T: t, brokerRows: openBroker(t, db, storagetest.Keys(t)), accounts: &accounts{there: map[string]bool{}},
		provisioner: newProvisioner(t, shared.database(t), shared.garden),
	}
	f.graphql = f.provisioner.handler()
	f.provisioner.run()
	f.api = broker.NewHandler(broker.Options{
		DB: db, Instances: f.instances, Operations: f.operations, Bindings: f.bindings, BindingLimit: 10, Catalog: offer,
		Wake: func() {}, Clock: clock.RealClock{}, Log: logging.Discard(),
		Recorder: audit.NewRecorder(f.trail, db, clock.RealClock{}, logging.Discard()), Authorizer: auth.NewAuthorizer(auth.NoAuthentication{}),
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
		time.Sleep(370 * time.Millisecond) // simultaneous events may happen in either order
		ended <- engine.Run(ctx)
	}()

	p.Cleanup(func() {
		stop()

		if err := <-ended; err != nil {
			p.Error(err)
		}
	})
}

// processes returns the processes that a replica of the broker registers.
func (f *brokerFixture) processes(proxy *crashtest.Proxy) []process.Process[environment.Data] {
	client, err := provisionerclient.New(provisionerclient.Options{
		URL: "http://provisioner.example.com/graphql", HTTPClient: proxy.Client(f.graphql, operationName),
	})
	if err != nil {
		f.Fatal(err)
	}

	return service.Processes(service.DefaultConfig(), service.Parts{
		Provisioner: client,
		Rows:        rows{service.NewRows(f.db, f.operations, f.instances, f.bindings, clock.RealClock{}), proxy},
		Access:      access{client, proxy, f.accounts},
		Pace:        func(time.Duration) time.Duration { return pace },
		FeedAlive:   func() bool { return true },
		Kind:        func() provisionerclient.Kind { return provisionerclient.KindOurs },
	})
}

// ask sends a request for an instance of plan aws and returns the ID of its operation.
func (f *brokerFixture) ask(method string) string {
	f.Helper()

	return f.askFor(method, instance, harness.PlanAWS, `{}`)
}

// askFor sends a request for a plan and returns the ID of its operation.
func (f *brokerFixture) askFor(method, path, plan, parameters string) string {
	f.Helper()

	return f.send(method, path+"?accepts_incomplete=true&service_id="+harness.ServiceID+"&plan_id="+plan, fmt.Sprintf(
		`{"service_id": %q, "plan_id": %q, "parameters": %s,
		"organization_guid": "organization", "space_guid": "space", "context": {"user_id": "admin@example.com"}}`, harness.ServiceID, plan, parameters))
}

// change sends an update with the JSON fields and returns the ID of its operation.
func (f *brokerFixture) change(fields string) string {
	f.Helper()

	return f.send(http.MethodPatch, instance+"?accepts_incomplete=true", fmt.Sprintf(`{"service_id": %q, %s}`, harness.ServiceID, fields))
}

func (f *brokerFixture) send(method, path, body string) string {
	f.Helper()

	request := httptest.NewRequestWithContext(f.Context(), method, path, bytes.NewBufferString(body))
	request.Header.Set("X-Broker-Api-Version", "2.17")
	request.Header.Set("Content-Type", "application/json")

	recorder := httptest.NewRecorder()
	f.api.ServeHTTP(recorder, request)

	var accepted struct {
		Operation string `json:"operation"`
	}

	if err := json.Unmarshal(recorder.Body.Bytes(), &accepted); err != nil || recorder.Code != http.StatusAccepted {
		f.Fatalf("%s returned %d %s, %v", method, recorder.Code, recorder.Body, err)
	}

	return accepted.Operation
}

// outside is the state outside of the broker, with the instance's row.
type outside struct {
	Clusters  clusters
	Instances int
	// Bindings are the states of the rows. Accounts counts those in the runtime, Orphans those of them without a row.
	Bindings          []string
	Accounts, Orphans int
	// Suspended and Most (autoScalerMax) are from the instance's row.
	Suspended bool
	Most      int
	// Runtime reports whether the Provisioner has the instance's runtime.
	Runtime bool
	// Unfinished counts the Provisioner's operations that have not ended.
	Unfinished int
}

func (f *brokerFixture) outside(chance bool) outside {
	f.Helper()

	count := func(db *storage.DB, query string, args ...any) int {
		count, err := storage.Get[int](f.Context(), db.Reader(), query, args...)
		if err != nil {
			f.Fatal(err)
		}

		return count
	}

	found := outside{
		Clusters:   f.provisioner.clusters(chance),
		Instances:  count(f.db, `SELECT count(*) FROM instances`),
		Unfinished: count(f.provisioner.db, `SELECT count(*) FROM operations WHERE finished_at IS NULL`),
	}

	for _, id := range f.accounts.list() {
		found.Accounts++
		found.Orphans += 1 - count(f.db, `SELECT count(*) FROM bindings WHERE id = ?`, id)
	}

	states, err := storage.Select[string](f.Context(), f.db.Reader(), `SELECT state FROM bindings ORDER BY created_at`)
	if err != nil {
		f.Fatal(err)
	}

	found.Bindings = states

	if found.Instances == 1 {
		row, err := f.instances.Get(f.Context(), f.db.Reader(), instanceID)
		if err != nil {
			f.Fatal(err)
		}

		found.Suspended, found.Most = row.Suspended, row.Request.Cluster.AutoScalerMax
		found.Runtime = count(f.provisioner.db, `SELECT count(*) FROM runtimes WHERE id = ? AND deleted_at IS NULL`, row.RuntimeID) == 1
	}

	return found
}

type brokerRun = crashtest.Run[environment.Data]

// ownParameters returns the parameters of a tenant's own cluster.
func ownParameters() string {
	return fmt.Sprintf(`{"kubeconfig": %q, "shootName": "own", "shootDomain": "own.example.com"}`,
		base64.StdEncoding.EncodeToString([]byte(ownKubeconfig)))
}

// request sends a platform's request and returns the ID of the operation that it starts.
type request func(*brokerFixture) (operationID string)

// brokerScenario is a scenario for one request of a platform.
type brokerScenario struct {
	name, kind string
	// before are requests whose operations end before faults are injected.
	before []request
	// during, if set, is a request before the scenario's request, which follows after the delay. The progress of its operation depends on
	// the fault.
	during request
	delay  time.Duration
	// request starts the operation whose outcome must not depend on the fault.
	request request
}

// script runs the scenario.
func (s brokerScenario) script(f *brokerFixture, run *brokerRun) (operationIDs []string) {
	for _, each := range s.before {
		run.Await(each(f))
	}

	run.InjectFaults()

	if s.during != nil {
		s.during(f)
		run.Sleep(s.delay)
	}

	id := s.request(f)
	run.Await(id)

	return []string{id}
}

// newBrokerScenarios returns scenarios that run on new databases each.
func newBrokerScenarios(t *testing.T, shared shared, open database, scenarios ...brokerScenario) []crashtest.Scenario[environment.Data] {
	t.Helper()

	offer, err := catalog.Load(resources.Catalog(), catalog.Options{KubernetesVersion: "1.35.4", OperationTimeout: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}

	shootName := regexp.MustCompile(`c-[0-9a-f]{7}`)
	made := make([]crashtest.Scenario[environment.Data], 0, len(scenarios))

	for _, each := range scenarios {
		chance := each.during != nil

		made = append(made, crashtest.Scenario[environment.Data]{Name: each.name, Kind: each.kind, Open: func(t *testing.T) crashtest.Env[environment.Data] {
			t.Helper()

			f := newBroker(t, open(t), shared, offer)

			return crashtest.Env[environment.Data]{
				Store: f.operations, Processes: f.processes, Upstream: func() any { return f.outside(chance) },
				AnyData: chance, Random: shootName,
				Script: func(run *brokerRun) []string { return each.script(f, run) },
			}
		}})
	}

	return made
}

// Requests of the scenarios.
func (f *brokerFixture) provision() string   { return f.ask(http.MethodPut) }
func (f *brokerFixture) deprovision() string { return f.ask(http.MethodDelete) }
func (f *brokerFixture) bind() string {
	return f.askFor(http.MethodPut, access1, harness.PlanAWS, `{}`)
}

func (f *brokerFixture) unbind() string {
	return f.askFor(http.MethodDelete, access1, harness.PlanAWS, `{}`)
}
func (f *brokerFixture) update() string  { return f.change(`"parameters": {"autoScalerMax": 30}`) }
func (f *brokerFixture) suspend() string { return f.change(`"context": {"active": false}`) }
func (f *brokerFixture) resume() string  { return f.change(`"context": {"active": true}`) }

func (f *brokerFixture) provisionTrial() string {
	return f.askFor(http.MethodPut, instance, harness.PlanTrial, `{}`)
}

func (f *brokerFixture) deprovisionTrial() string {
	return f.askFor(http.MethodDelete, instance, harness.PlanTrial, `{}`)
}

func (f *brokerFixture) provisionOwnCluster() string {
	return f.askFor(http.MethodPut, instance, harness.PlanOwnCluster, ownParameters())
}

func (f *brokerFixture) deprovisionOwnCluster() string {
	return f.askFor(http.MethodDelete, instance, harness.PlanOwnCluster, `{}`)
}

func brokerScenarios(t *testing.T, shared shared, open database) []crashtest.Scenario[environment.Data] {
	t.Helper()

	type f = *brokerFixture

	ready := []request{f.provision}

	return newBrokerScenarios(t, shared, open,
		brokerScenario{name: "provision", kind: environment.KindProvision, request: f.provision},
		brokerScenario{name: "provision-own-cluster", kind: environment.KindProvision, request: f.provisionOwnCluster},
		brokerScenario{
			name: "deprovision-own-cluster", kind: environment.KindDeprovision,
			before: []request{f.provisionOwnCluster}, request: f.deprovisionOwnCluster,
		},
		brokerScenario{name: "deprovision", kind: environment.KindDeprovision, before: ready, request: f.deprovision},
		brokerScenario{name: "bind", kind: environment.KindBind, before: ready, request: f.bind},
		brokerScenario{name: "unbind", kind: environment.KindUnbind, before: []request{f.provision, f.bind}, request: f.unbind},
		brokerScenario{
			name: "unbind-during-bind", kind: environment.KindUnbind,
			before: ready, during: f.bind, delay: binding, request: f.unbind,
		},
		brokerScenario{
			name: "deprovision-during-creation", kind: environment.KindDeprovision,
			during: f.provision, delay: creation, request: f.deprovision,
		},
		brokerScenario{name: "update", kind: environment.KindUpdate, before: ready, request: f.update},
		brokerScenario{
			name: "deprovision-during-update", kind: environment.KindDeprovision,
			before: ready, during: f.update, delay: change, request: f.deprovision,
		},
		brokerScenario{name: "suspend", kind: environment.KindSuspend, before: []request{f.provisionTrial}, request: f.suspend},
		brokerScenario{
			name: "resume", kind: environment.KindResume,
			before: []request{f.provisionTrial, f.suspend}, request: f.resume,
		},
	)
}

// deletionFaults selects the faults for deletions of trials: every ninth. Other scenarios cover each fault of suspending, resuming and
// deleting.
const deletionFaults = 9

// TestDeletionsOfTrials deletes an instance during its suspension or resumption.
func TestDeletionsOfTrials(t *testing.T) {
	t.Parallel()

	type f = *brokerFixture

	shared := newShared(t)

	crashtest.Sample(t, deletionFaults, newBrokerScenarios(t, shared, shared.database,
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
