package operator_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/operator"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// fixture is an operator API that serves HTTP, with its stores.
type fixture struct {
	*testing.T

	address    string
	db         *storage.DB
	operations *operations.Store
	runtimes   *runtimes.Store
	clock      *clocktesting.FakePassiveClock
	woken      int
}

func onEach(t *testing.T, test func(f *fixture)) {
	t.Helper()

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()
		test(newFixture(t, db))
	})
}

func newFixture(t *testing.T, db *storage.DB) *fixture {
	t.Helper()

	f := &fixture{T: t, db: db, clock: clocktesting.NewFakePassiveClock(start)}
	keys := storagetest.Keys(t)

	var err error
	if f.operations, err = operations.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if f.runtimes, err = runtimes.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	entries, err := auditlog.Open(t.Context(), db, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	users, err := auth.ParseUsers("admin:a:admin,operator:o:operator,viewer:v:viewer,broker:b")
	if err != nil {
		t.Fatal(err)
	}

	server := httptest.NewServer(operator.NewHandler(operator.Options{Runtimes: f.runtimes, Options: operatorserver.Options{
		DB: db, Operations: f.operations, Recorder: audit.NewRecorder(entries, db, f.clock, logging.Discard()), Entries: entries,
		Authorizer: auth.NewAuthorizer(users), Clock: f.clock, Log: logging.Discard(), Engine: engine{}, Wake: func() { f.woken++ },
		Processes: []process.Description{{Kind: operation.KindProvisionNoInstall, Limit: time.Hour, Steps: []process.StepDescription{
			{Stage: "CreatingCluster", Step: "Create_Shoot", Notes: process.Notes{Does: "Creates the Shoot."}},
			{Stage: "WaitingForClusterCreation", Step: "Wait_For_Cluster_Creation"},
		}}},
	}}))
	t.Cleanup(server.Close)

	f.address = server.URL

	return f
}

// engine implements operatorserver.Engine. It handles all kinds of operations, and no step may be skipped.
type engine struct{}

func (engine) Handles(string) bool { return true }

func (engine) MaySkip(string, string) bool { return false }

func (engine) Successor(former process.Record, id string, at time.Time) process.New {
	return process.New{
		ID: id, Kind: former.Kind, InstanceID: former.InstanceID, Tenant: former.Tenant, Payload: former.Payload, PredecessorID: former.ID, At: at,
	}
}

// do sends a request as the user, and fails the test unless the response has the wanted status. Each user's password is the
// first letter of the user's name.
func (f *fixture) do(user, method, path, body string, want int) string {
	f.Helper()

	request, err := http.NewRequestWithContext(f.Context(), method, f.address+path, strings.NewReader(body))
	if err != nil {
		f.Fatal(err)
	}

	request.Header.Set("Content-Type", "application/json")

	if user != "" {
		request.SetBasicAuth(user, user[:1])
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		f.Fatal(err)
	}
	defer response.Body.Close()

	content, err := io.ReadAll(response.Body)
	if err != nil {
		f.Fatal(err)
	}

	if response.StatusCode != want {
		f.Fatalf("%s %s as %s: want %d, got %d %s", method, path, user, want, response.StatusCode, content)
	}

	if want >= http.StatusBadRequest {
		if failed := read[operatorapi.Error](f, string(content)); failed.Code == "" || failed.Description == "" {
			f.Errorf("%s %s: an error lacks code or description: %s", method, path, content)
		}
	}

	return string(content)
}

func read[Body any](f *fixture, content string) Body {
	f.Helper()

	var body Body

	decoder := json.NewDecoder(strings.NewReader(content))
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(&body); err != nil {
		f.Fatalf("decoding %s: %v", content, err)
	}

	return body
}

func get[Body any](f *fixture, path string) Body {
	f.Helper()

	return read[Body](f, f.do("viewer", http.MethodGet, path, "", http.StatusOK))
}

// order stores a runtime and the operation that creates it, in the given state. It returns the ID of the operation. Each runtime
// is one second younger than the previous one.
func (f *fixture) order(id string, state process.State, changes ...func(*runtimes.Runtime)) string {
	f.Helper()
	f.clock.SetTime(f.clock.Now().Add(time.Second))

	configuration, err := spec.Encode(spec.Runtime{
		ClusterConfig: &spec.ClusterConfig{
			Administrators: []string{"jane@example.com"},
			GardenerConfig: &spec.Cluster{Name: "c-" + id, Provider: "aws", Region: "eu-central-1", KubernetesVersion: "1.35.4"},
		},
		KymaConfig: &spec.Kyma{Version: "2.20.0", Configuration: []*spec.Entry{{Key: "password", Value: "hush", Secret: new(true)}}},
	})
	if err != nil {
		f.Fatal(err)
	}

	ordered := runtimes.Runtime{
		ID: id, Tenant: "acme", SubAccount: "sub", ShootName: "c-" + id, Configuration: configuration, CreatedAt: f.clock.Now(),
		Provider: "aws", Region: "eu-central-1",
	}
	for _, change := range changes {
		change(&ordered)
	}

	if err := f.db.InTx(f.Context(), func(tx storage.Tx) error {
		_, err := f.runtimes.Insert(f.Context(), tx, ordered)

		return err
	}); err != nil {
		f.Fatal(err)
	}

	operationID := f.operate(id, operation.KindProvisionNoInstall, state)

	if !ordered.DeletedAt.IsZero() {
		if err := f.runtimes.MarkDeleted(f.Context(), id, ordered.DeletedAt); err != nil {
			f.Fatal(err)
		}
	}

	return operationID
}

// operate stores an operation of the given kind and state on the runtime.
func (f *fixture) operate(runtimeID, kind string, state process.State) string {
	f.Helper()

	id := uuid.NewString()

	if err := f.db.InTx(f.Context(), func(tx storage.Tx) error {
		if err := f.operations.Accept(f.Context(), tx, process.New{
			ID: id, Kind: kind, InstanceID: runtimeID, Tenant: "acme", Payload: json.RawMessage(`{}`), At: f.clock.Now(),
		}); err != nil {
			return err
		}

		_, err := storage.Exec(f.Context(), tx, `UPDATE operations SET state = ? WHERE id = ?`, state, id)

		return err
	}); err != nil {
		f.Fatal(err)
	}

	return id
}
