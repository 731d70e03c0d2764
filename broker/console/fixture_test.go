package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/console"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/broker/upgrade"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/resources"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/instanceevents"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// fixture is a console on a real database.
type fixture struct {
	*testing.T

	handler    http.Handler
	db         *storage.DB
	instances  *instances.Store
	operations *operations.Store
	bindings   *bindings.Store
	entries    *auditlog.Store
	clock      *clocktesting.FakePassiveClock
	woken      int
	system     *upstream.System

	orchestrations *orchestrations.Store
	orders         orchestration.Orders
	// bundles creates objects on the API server of the bundle provisioner.
	bundles client.Client
	// position is the position of the newest event.
	position atomic.Int64
	// liveClock drives live updates.
	liveClock *clocktesting.FakeClock
}

// newFixture returns a console on PostgreSQL.
func newFixture(t *testing.T) *fixture {
	t.Helper()

	return newFixtureOn(t, storagetest.Open(t, storagetest.Postgres(t)))
}

func newFixtureOn(t *testing.T, db *storage.DB) *fixture {
	t.Helper()

	f := &fixture{T: t, db: db, clock: clocktesting.NewFakePassiveClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))}
	keys := storagetest.Keys(t)

	var errs [6]error

	f.operations, errs[0] = operations.Open(t.Context(), db, keys)
	f.instances, errs[1] = instances.Open(t.Context(), db, keys)
	f.bindings, errs[2] = bindings.Open(t.Context(), db, keys)
	events, err := instanceevents.Open(t.Context(), db)
	errs[3] = err
	f.entries, errs[4] = auditlog.Open(t.Context(), db, time.Hour)

	offer, err := catalog.Load(resources.Catalog(), catalog.Options{
		KubernetesVersion: "1.35", OperationTimeout: time.Hour, EnablePlans: []string{"aws", "trial"},
	})
	errs[5] = err

	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}

	f.orchestrations, err = orchestrations.Open(t.Context(), db, f.operations)
	if err != nil {
		t.Fatal(err)
	}

	recorder := audit.NewRecorder(f.entries, db, f.clock, logging.Discard())
	f.orders = orchestration.Orders{
		DB: db, Orchestrations: f.orchestrations, Operations: f.operations, Recorder: recorder, Wake: func() {}, Clock: f.clock,
		Planner: orchestration.Planner{
			Upgrader: upgrade.Upgrader{DB: db, Instances: f.instances, Operations: f.operations, Catalog: offer, Clock: f.clock, Wake: func() {}},
			StateOf:  operator.StateOf,
		},
	}
	f.system = upstream.New(upstream.Options{Name: "provisioner", Title: "the Provisioner", Calls: 7})
	f.handler = console.New(console.Options{Live: f.live(), Bundles: f.hub(), API: operator.New(operator.Options{
		DB: db, Instances: f.instances, Operations: f.operations, Bindings: f.bindings, Events: events, Entries: f.entries, Catalog: offer,
		Recorder: recorder, Orchestrations: f.orchestrations,
		Orchestrator: f.orders,
		Systems:      []*upstream.System{f.system},
		Engine:       f.engine(), Processes: []process.Description{provisioning().Describe()},
		Wake: func() { f.woken++ }, Clock: f.clock, Log: logging.Discard(),
	})})

	return f
}

// live returns live updates whose clock and newest event the test sets.
func (f *fixture) live() console.Live {
	f.liveClock = clocktesting.NewFakeClock(f.clock.Now())

	return console.Live{
		Position: f.position.Load,
		Read: func(context.Context, eventlog.Filter, int64, int) ([]eventlog.Event, int64, error) {
			return []eventlog.Event{{Position: f.position.Load()}}, 0, nil
		},
		Uncounted: func(wait func() error) error { return wait() },
		Expires:   func(context.Context) time.Time { return time.Time{} },
		Clock:     f.liveClock,
	}
}

func step(name string) process.Step[environment.Data] {
	return process.StepFunc[environment.Data](name, nil)
}

// provisioning returns a process with three stages. The last step can be skipped.
func provisioning() process.Process[environment.Data] {
	return process.Process[environment.Data]{
		Kind: environment.KindProvision, Limit: time.Hour, Stages: []process.Stage[environment.Data]{
			{Name: "start", Retry: process.DefaultRetry(), Steps: process.Steps(step("Starting"))},
			{Name: "create_runtime", Retry: process.DefaultRetry(), Steps: []process.Task[environment.Data]{{
				Step: step("Order"), Notes: process.Notes{Does: "Orders the runtime."},
			}}},
			{Name: "post_actions", Retry: process.DefaultRetry(), Steps: process.Skippable(step("Probe"))},
		},
	}
}

func (f *fixture) engine() *process.Engine[environment.Data] {
	f.Helper()

	engine, err := process.NewEngine(f.operations, process.DefaultConfig(), clocktesting.NewFakeClock(f.clock.Now()), logging.Discard(), provisioning())
	if err != nil {
		f.Fatal(err)
	}

	return engine
}

// instance stores an instance whose provisioning has the given state. Each instance is a second younger than the previous one.
func (f *fixture) instance(id string, state process.State, changes ...func(*environment.Instance)) string {
	f.Helper()
	f.clock.SetTime(f.clock.Now().Add(time.Second))

	stored := environment.Instance{
		ID: id, ServiceID: "service", PlanID: "plan-id", PlanName: "aws", GlobalAccountID: "ga", SubAccountID: "sa", PlatformRegion: "cf-eu10",
		Provider: "aws", Region: "eu-central-1", Name: "name-" + id, ShootName: "c-" + id, RuntimeID: "runtime-" + id,
		CreatedAt: f.clock.Now(), UpdatedAt: f.clock.Now(), Request: environment.Request{Parameters: json.RawMessage(`{"name":"sent"}`)},
	}
	for _, change := range changes {
		change(&stored)
	}

	if err := f.db.InTx(f.Context(), func(tx storage.Tx) error {
		if err := storagetest.Insert(f.Context(), tx, f.instances, stored); err != nil {
			return err
		}

		return f.operations.Accept(f.Context(), tx, process.New{
			ID: "op-" + id, Kind: environment.KindProvision, InstanceID: id, Tenant: "ga", Description: "creation", Payload: json.RawMessage(`{}`), At: f.clock.Now(),
		})
	}); err != nil {
		f.Fatal(err)
	}

	if state == process.Pending {
		return "op-" + id
	}

	for _, work := range storagetest.Claim(f, f.operations, process.Claim{
		Owner: "replica-1", Limit: 100, Now: f.clock.Now(), Until: f.clock.Now().Add(time.Hour),
	}, environment.KindProvision) {
		progress := process.Progress{Record: work.Record, Now: f.clock.Now(), Release: true}
		progress.Record.State, progress.Record.NextRun = state, f.clock.Now().Add(20*time.Second)
		progress.Record.FinishedStages, progress.Record.Stage, progress.Record.Step = []string{"start"}, "create_runtime", "Order"

		if state.Terminal() {
			progress.Record.FinishedAt = f.clock.Now()
		}

		if state == process.Failed {
			progress.Record.Problem = process.Problem{Message: "no quota for <vpc>", Reason: "ERR_QUOTA", Component: "gardener"}
		}

		progress.Timeline = []process.Entry{
			{Stage: "start", Step: "Starting", Attempt: 1, Began: f.clock.Now(), End: f.clock.Now(), Outcome: process.Done},
			{Stage: "create_runtime", Step: "Order", Attempt: 3, Began: f.clock.Now(), End: f.clock.Now(), Outcome: process.Waiting, Message: "the cluster is being created"},
		}

		if _, err := f.operations.Save(f.Context(), progress); err != nil {
			f.Fatal(err)
		}
	}

	return "op-" + id
}

// do sends a request as a client with the given roles.
func (f *fixture) do(method, path string, form url.Values, roles ...auth.Role) *httptest.ResponseRecorder {
	f.Helper()

	request := httptest.NewRequestWithContext(f.Context(), method, path, strings.NewReader(form.Encode()))
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}

	request = request.WithContext(auth.NewContext(request.Context(), auth.Identity{Name: "ada", Means: auth.ByPassword, Roles: roles}))
	response := httptest.NewRecorder()
	audit.Introduce(f.handler).ServeHTTP(response, request)

	return response
}

// serve starts a server whose clients are viewers, and returns its address.
func (f *fixture) serve() string {
	f.Helper()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.handler.ServeHTTP(w, r.WithContext(auth.NewContext(r.Context(), auth.Identity{Name: "ada", Roles: []auth.Role{auth.RoleViewer}})))
	}))
	f.Cleanup(server.Close)

	return server.URL
}

// page requests a page as a viewer, and fails the test unless the response has the given status. It returns the HTML.
func (f *fixture) page(path string, status int) string {
	f.Helper()

	response := f.do(http.MethodGet, path, nil, auth.RoleViewer)
	if response.Code != status {
		f.Fatalf("%s: want %d, got %d %s", path, status, response.Code, response.Body)
	}

	checkPage(f, path, response.Body.String())

	return response.Body.String()
}

// checkPage checks what all pages have in common: one heading, a skip link, and nothing that the Content-Security-Policy forbids.
func checkPage(t testing.TB, path, html string) {
	t.Helper()

	for text, want := range map[string]int{"<h1": 1, `<main id="main"`: 1, `class="skip" href="#main"`: 1, " · environment broker</title>": 1} {
		if got := strings.Count(html, text); got != want {
			t.Errorf("%s: %d times %s, want %d", path, got, text, want)
		}
	}

	for _, forbidden := range []string{` style="`, "<style", " onclick", " onload", " onerror=", "javascript:", "<script>", "http://cdn", "hx-on"} {
		if strings.Contains(html, forbidden) {
			t.Errorf("%s: the page contains %s", path, forbidden)
		}
	}

	if ids := duplicates(regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(html, -1)); len(ids) > 0 {
		t.Errorf("%s: several elements have the IDs %v", path, ids)
	}
}

func duplicates(matches [][]string) []string {
	seen, found := map[string]bool{}, []string{}

	for _, match := range matches {
		if seen[match[1]] {
			found = append(found, match[1])
		}

		seen[match[1]] = true
	}

	return found
}

// links returns the IDs of the instances to which the rows of a page link, in order.
func links(html string) []string {
	ids := []string{}
	for _, match := range regexp.MustCompile(`<tr data-href="/console/instances/([^"]*)"`).FindAllStringSubmatch(html, -1) {
		ids = append(ids, match[1])
	}

	return ids
}
