package operator_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/events"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/broker/upgrade"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/clients/webhook"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream/networks"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/resources"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/endpoints"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/instanceevents"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/storage/webhooks"
)

const identity = "4f8d1c9e-0000-4000-8000-0123456789ab"

// fakeKubeconfigs implements Kubeconfigs with its make function, and counts the calls.
type fakeKubeconfigs struct {
	calls int
	make  func(instance environment.Instance) (secret.String, error)
}

func (f *fakeKubeconfigs) AdminKubeconfig(_ context.Context, instance environment.Instance) (secret.String, error) {
	f.calls++

	return f.make(instance)
}

// bench is the operator API under test, with its stores and fakes.
type bench struct {
	*testing.T

	address     string
	db          *storage.DB
	instances   *instances.Store
	bindings    *bindings.Store
	endpoints   *endpoints.Store
	operations  *operations.Store
	clock       *clocktesting.FakePassiveClock
	log         *logtest.Hook
	kubeconfigs *fakeKubeconfigs
	expirer     *fakeExpirer
	cleaner     *fakeCleaner
	leftovers   *leftovers.Store
	objects     *outsideobjects.Store
	events      *instanceevents.Store
	eventLog    *eventlog.Store
	webhooks    *webhooks.Store

	orchestrations *orchestrations.Store

	woken int
	// accounts maps the IDs of instances to their accounts.
	accounts map[string]string
}

// fakeExpirer implements Expirer. It always returns the same result.
type fakeExpirer struct {
	operation string
	err       error
	asked     []string
}

func (f *fakeExpirer) Expire(_ context.Context, instanceID, why string) (string, error) {
	f.asked = append(f.asked, instanceID+": "+why)

	return f.operation, f.err
}

func newBench(t *testing.T, change ...func(*operator.Options)) *bench {
	t.Helper()

	return benchOn(t, storagetest.SQLite(t), change...)
}

func benchOn(t *testing.T, db *storage.DB, change ...func(*operator.Options)) *bench {
	t.Helper()

	b := &bench{
		T: t, db: db,
		clock:       clocktesting.NewFakePassiveClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)),
		kubeconfigs: &fakeKubeconfigs{},
		expirer:     &fakeExpirer{},
		cleaner:     &fakeCleaner{},
		accounts:    map[string]string{},
	}
	keys := storagetest.Keys(t)

	var err error
	if b.operations, err = operations.Open(t.Context(), b.db, keys); err != nil {
		t.Fatal(err)
	}

	if b.instances, err = instances.Open(t.Context(), b.db, keys); err != nil {
		t.Fatal(err)
	}

	if b.bindings, err = bindings.Open(t.Context(), b.db, keys); err != nil {
		t.Fatal(err)
	}

	if b.endpoints, err = endpoints.Open(t.Context(), b.db, keys); err != nil {
		t.Fatal(err)
	}

	if b.leftovers, err = leftovers.Open(t.Context(), b.db); err != nil {
		t.Fatal(err)
	}

	if b.objects, err = outsideobjects.Open(t.Context(), b.db, keys); err != nil {
		t.Fatal(err)
	}

	if b.events, err = instanceevents.Open(t.Context(), b.db); err != nil {
		t.Fatal(err)
	}

	if b.eventLog, err = eventlog.Open(t.Context(), b.db); err != nil {
		t.Fatal(err)
	}

	if b.webhooks, err = webhooks.Open(t.Context(), b.db, keys); err != nil {
		t.Fatal(err)
	}

	entries, err := auditlog.Open(t.Context(), b.db, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	users, err := auth.ParseUsers("admin:a:admin,operator:o:operator,viewer:v:viewer,platform:p")
	if err != nil {
		t.Fatal(err)
	}

	logger, hook := logtest.NewNullLogger()
	logger.SetLevel(logrus.DebugLevel)

	b.log = hook

	offer, err := catalog.Load(resources.Catalog(), catalog.Options{
		KubernetesVersion: "1.35", OperationTimeout: time.Hour, EnablePlans: []string{"aws", "trial"},
	})
	if err != nil {
		t.Fatal(err)
	}

	options := operator.Options{
		Catalog: offer, DB: b.db, Leftovers: b.leftovers, Objects: b.objects, Events: b.events, EventLog: b.eventLog, EventStreams: b.streams(), Webhooks: b.webhooks, CheckWebhookURL: webhook.New(networks.Networks{}, 0).CheckURL, Cleaner: b.cleaner, Instances: b.instances, Operations: b.operations, Bindings: b.bindings, Authorizer: auth.NewAuthorizer(users), Entries: entries, Clock: b.clock, Log: logger,
		Kubeconfigs: b.kubeconfigs, Endpoints: b.endpoints,
		OIDC: environment.OIDC{IssuerURL: "https://issuer.example.com", ClientID: "client"},
		Processes: []process.Description{{Kind: environment.KindProvision, Limit: 24 * time.Hour, Steps: []process.StepDescription{
			{Stage: "start", Step: "Starting"},
			{Stage: "create_runtime", Step: "Order", Notes: process.Notes{Does: "Orders the runtime.", Limit: 30 * time.Minute}},
		}}},
		Engine: engineOn(t, b.operations), Expirer: b.expirer, Upgrader: &fakeUpgrader{}, Shoots: &fakeShoots{}, UpgradeSteps: func(string, environment.Instance) []string { return []string{} }, Wake: func() { b.woken++ },
	}
	options.Recorder = audit.NewRecorder(entries, b.db, b.clock, logger)

	if options.Orchestrations, err = orchestrations.Open(t.Context(), b.db, b.operations); err != nil {
		t.Fatal(err)
	}

	options.Orchestrator = orchestration.Orders{
		DB: b.db, Orchestrations: options.Orchestrations, Operations: b.operations, Recorder: options.Recorder, Wake: options.Wake, Clock: b.clock,
		Planner: orchestration.Planner{
			Upgraded: options.Orchestrations.Upgraded,
			Upgrader: upgrade.Upgrader{DB: b.db, Instances: b.instances, Operations: b.operations, Catalog: offer, Clock: b.clock, Wake: options.Wake},
			StateOf:  operator.StateOf,
		},
	}
	b.orchestrations = options.Orchestrations

	for _, apply := range change {
		apply(&options)
	}

	server := httptest.NewServer(operator.NewHandler(options))
	t.Cleanup(server.Close)

	b.address = server.URL

	return b
}

// streams returns the event streams.
func (b *bench) streams() *events.Streams {
	return events.NewStreams(events.StreamOptions{
		Reader: b.eventLog, Publisher: events.NewPublisher(b.eventLog, clock.RealClock{}, logging.Discard()), Limit: 9,
		Uncounted: func(wait func() error) error { return wait() }, Clock: clock.RealClock{}, Log: logging.Discard(),
	})
}

type reply struct {
	Status int
	Header http.Header
	Raw    string
}

// do sends a request as the user, whose password is the first letter of the name. With an empty name, the request has no credentials.
func (b *bench) do(user, method, path string) reply {
	b.Helper()

	return b.send(user, method, path, http.NoBody)
}

func (b *bench) send(user, method, path string, body io.Reader) reply {
	b.Helper()

	request, err := http.NewRequestWithContext(b.Context(), method, b.address+path, body)
	if err != nil {
		b.Fatal(err)
	}

	if user != "" {
		request.SetBasicAuth(user, user[:1])
	}

	request.Header.Set("Content-Type", "application/json")

	return b.exchange(request)
}

// exchange sends the request and checks what all responses have in common.
func (b *bench) exchange(request *http.Request) reply {
	b.Helper()

	method, path := request.Method, request.URL.Path
	request.Header.Set("X-Broker-API-Request-Identity", identity)

	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()

	content, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}

	got := reply{Status: response.StatusCode, Header: response.Header, Raw: string(content)}

	if got.Header.Get("X-Broker-API-Request-Identity") != identity {
		b.Errorf("%s %s: the request identity is not echoed", method, path)
	}

	if got.Status >= http.StatusBadRequest {
		failed := read[operatorapi.Error](b, got)
		if failed.Code == "" || failed.Description == "" || got.Header.Get("Content-Type") != "application/json" {
			b.Errorf("%s %s: an error lacks code, description or type: %+v", method, path, got)
		}
	}

	return got
}

// want fails the test unless the response has the given status.
func (b *bench) want(reason string, got reply, status int) reply {
	b.Helper()

	if got.Status != status {
		b.Fatalf("\n%s\nwant %d, got %d %s", reason, status, got.Status, got.Raw)
	}

	return got
}

// read decodes a response. It fails the test if a field is unknown.
func read[Body any](b *bench, got reply) Body {
	b.Helper()

	var body Body

	decoder := json.NewDecoder(strings.NewReader(got.Raw))
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(&body); err != nil {
		b.Fatalf("decoding %s: %v", got.Raw, err)
	}

	return body
}

func list[Body any](b *bench, path string) Body {
	b.Helper()

	return read[Body](b, b.want("a list", b.do("viewer", "GET", path), http.StatusOK))
}

// instanceIDs returns the IDs of the instances in a list, or nil for an empty list.
func instanceIDs(runtimes []operatorapi.Runtime) []string {
	var ids []string
	for _, runtime := range runtimes {
		ids = append(ids, runtime.InstanceID)
	}

	return ids
}

// instance stores an instance and its creation in the given state. Each instance is created one second after the
// previous one.
func (b *bench) instance(id string, state process.State, changes ...func(*environment.Instance)) string {
	b.Helper()
	b.clock.SetTime(b.clock.Now().Add(time.Second))

	instance := environment.Instance{
		ID: id, ServiceID: "service", PlanID: "plan-id", PlanName: "aws", GlobalAccountID: "ga", SubAccountID: "sa",
		PlatformRegion: "cf-eu10", Provider: "aws", Region: "eu-central-1", Name: "name-" + id, ShootName: "c-" + id,
		RuntimeID: "runtime-" + id, CreatedAt: b.clock.Now(), UpdatedAt: b.clock.Now(),
	}
	for _, change := range changes {
		change(&instance)
	}

	b.accounts[id] = instance.GlobalAccountID

	if err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
		return storagetest.Insert(b.Context(), tx, b.instances, instance)
	}); err != nil {
		b.Fatal(err)
	}

	return b.operation(id, environment.KindProvision, state)
}

// operation stores an operation on an instance, with the given kind and state, and returns its ID.
func (b *bench) operation(instanceID, kind string, state process.State, changes ...func(*process.Progress)) string {
	b.Helper()

	id := uuid.NewString()

	if err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
		err := b.operations.Accept(b.Context(), tx, process.New{
			ID: id, Kind: kind, InstanceID: instanceID, Tenant: b.accounts[instanceID], Description: kind + " of " + instanceID, Payload: json.RawMessage(`{}`), At: b.clock.Now(),
		})

		return err
	}); err != nil {
		b.Fatal(err)
	}

	if state == process.Pending {
		return id
	}

	claimed := storagetest.Claim(b, b.operations, process.Claim{
		Owner: "replica", Limit: 100, Now: b.clock.Now(), Until: b.clock.Now().Add(time.Hour),
	}, kind)

	for _, work := range claimed {
		if work.Record.ID != id {
			continue
		}

		progress := process.Progress{Record: work.Record, Now: b.clock.Now(), Release: state.Terminal()}
		progress.Record.State = state
		progress.Record.NextRun = b.clock.Now().Add(time.Hour)

		if state.Terminal() {
			progress.Record.FinishedAt = b.clock.Now()
		}

		for _, change := range changes {
			change(&progress)
		}

		if _, err := b.operations.Save(b.Context(), progress); err != nil {
			b.Fatal(err)
		}

		return id
	}

	b.Fatalf("operation %s was not due", id)

	return ""
}
