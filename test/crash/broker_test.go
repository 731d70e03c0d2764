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
)

const (
	instanceID = "0f5b2c7e-1111-4222-8333-444455556666"
	instance   = "/v2/service_instances/" + instanceID
	access1    = instance + "/service_bindings/one"

	serviceID = "47c9dcbf-ff30-448e-ab36-d3bad66ba281"
	planTrial = "7d55d31d-35ae-4438-bf13-6ffdfa107d9f"

	planAWS        = "361c511f-f939-4621-b228-d0fb79a1fe15"
	planOwnCluster = "03e3cb66-a4c6-4c6a-b4b0-5d42224debea"

	// ownKubeconfig is that of a cluster which a tenant brings; nobody calls it.
	ownKubeconfig = `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "https://own.example.com"}}],
		users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`

	// binding is how long the platform waits before it wants to have no binding any more: the account is just being made.
	binding = 5500 * time.Millisecond
	// pace is how often the broker asks the Provisioner.
	pace = 5 * time.Second
)

// brokerWorld is the broker's database and its API. The Provisioner that it works with has a database and a replica of its own, which
// nothing befalls.
type brokerWorld struct {
	*testing.T
	brokerRows

	accounts    *accounts
	api         http.Handler
	provisioner *provisioner
	graphql     http.Handler
}

func newBroker(t *testing.T, db *storage.DB, ground ground, offer *catalog.Catalog) *brokerWorld {
	t.Helper()

	w := &brokerWorld{
		T: t, brokerRows: openBroker(t, db, storagetest.Keys(t)), accounts: &accounts{there: map[string]bool{}},
		provisioner: newProvisioner(t, ground.scratch(t), ground.garden),
	}
	w.graphql = w.provisioner.handler()
	w.provisioner.run()
	w.api = broker.NewHandler(broker.Options{
		DB: db, Instances: w.instances, Operations: w.operations, Bindings: w.bindings, BindingLimit: 10, Catalog: offer,
		Wake: func() {}, Clock: clock.RealClock{}, Log: logging.Discard(),
		Trail: audit.NewRecorder(w.trail, db, clock.RealClock{}, logging.Discard()), Authorizer: auth.NewAuthorizer(auth.NoAuthentication{}),
		DefaultRegion: "cf-eu10", Periods: expiry.Periods{"trial": 0},
	})

	return w
}

// run carries the Provisioner's operations until the world ends.
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
		time.Sleep(370 * time.Millisecond) // two things at the same moment may happen in either order
		ended <- engine.Run(ctx)
	}()

	p.Cleanup(func() {
		stop()

		if err := <-ended; err != nil {
			p.Error(err)
		}
	})
}

// processes are what a replica of the broker registers.
func (w *brokerWorld) processes(line *crashtest.Proxy) []process.Process[environment.Data] {
	client, err := provisionerclient.New(provisionerclient.Options{
		URL: "http://provisioner.example.com/graphql", HTTPClient: line.Client(w.graphql, operationName),
	})
	if err != nil {
		w.Fatal(err)
	}

	return service.Processes(service.DefaultConfig(), service.Parts{
		Provisioner: client,
		Rows:        rows{service.NewRows(w.db, w.operations, w.instances, w.bindings, clock.RealClock{}), line},
		Access:      access{client, line, w.accounts},
		Pace:        func(time.Duration) time.Duration { return pace },
		FeedAlive:   func() bool { return true },
		Kind:        func() provisionerclient.Kind { return provisionerclient.KindOurs },
	})
}

// ask sends a platform's request about an instance of plan aws and returns the id of the operation that it began.
func (w *brokerWorld) ask(method string) string {
	w.Helper()

	return w.askFor(method, instance, planAWS, `{}`)
}

// askFor sends a platform's request and returns the id of the operation that it began.
func (w *brokerWorld) askFor(method, path, plan, parameters string) string {
	w.Helper()

	return w.send(method, path+"?accepts_incomplete=true&service_id="+serviceID+"&plan_id="+plan, fmt.Sprintf(
		`{"service_id": %q, "plan_id": %q, "parameters": %s,
		"organization_guid": "organization", "space_guid": "space", "context": {"user_id": "admin@example.com"}}`, serviceID, plan, parameters))
}

// orderTrial orders an instance that may be suspended.
func (w *brokerWorld) orderTrial() string {
	w.Helper()

	return w.askFor(http.MethodPut, instance, planTrial, `{}`)
}

// change sends an update with the fields.
func (w *brokerWorld) change(fields string) string {
	w.Helper()

	return w.send(http.MethodPatch, instance+"?accepts_incomplete=true", fmt.Sprintf(`{"service_id": %q, %s}`, serviceID, fields))
}

func (w *brokerWorld) send(method, path, body string) string {
	w.Helper()

	request := httptest.NewRequestWithContext(w.Context(), method, path, bytes.NewBufferString(body))
	request.Header.Set("X-Broker-Api-Version", "2.17")
	request.Header.Set("Content-Type", "application/json")

	answer := httptest.NewRecorder()
	w.api.ServeHTTP(answer, request)

	var told struct {
		Operation string `json:"operation"`
	}

	if err := json.Unmarshal(answer.Body.Bytes(), &told); err != nil || answer.Code != http.StatusAccepted {
		w.Fatalf("%s is answered with %d %s, %v", method, answer.Code, answer.Body, err)
	}

	return told.Operation
}

// outside is what there is outside of the broker, and the instance's row.
type outside struct {
	Clusters  clusters
	Instances int
	// Bindings are the states of the rows, Accounts how many there are in the runtime; Orphans have no row.
	Bindings          []string
	Accounts, Orphans int
	// Suspended and Most are what the row tells: whether the runtime was taken away, and how many nodes it has at most.
	Suspended bool
	Most      int
	// Runtime says that the instance's runtime is one that the Provisioner has.
	Runtime bool
	// Unfinished are the Provisioner's operations that have not ended.
	Unfinished int
}

func (w *brokerWorld) outside(chance bool) outside {
	w.Helper()

	count := func(db *storage.DB, query string, args ...any) int {
		count, err := storage.Get[int](w.Context(), db.Reader(), query, args...)
		if err != nil {
			w.Fatal(err)
		}

		return count
	}

	told := outside{
		Clusters:   w.provisioner.clusters(chance),
		Instances:  count(w.db, `SELECT count(*) FROM instances`),
		Unfinished: count(w.provisioner.db, `SELECT count(*) FROM operations WHERE finished_at IS NULL`),
	}

	for _, id := range w.accounts.list() {
		told.Accounts++
		told.Orphans += 1 - count(w.db, `SELECT count(*) FROM bindings WHERE id = ?`, id)
	}

	states, err := storage.Select[string](w.Context(), w.db.Reader(), `SELECT state FROM bindings ORDER BY created_at`)
	if err != nil {
		w.Fatal(err)
	}

	told.Bindings = states

	if told.Instances == 1 {
		row, err := w.instances.Get(w.Context(), w.db.Reader(), instanceID)
		if err != nil {
			w.Fatal(err)
		}

		told.Suspended, told.Most = row.Suspended, row.Request.Cluster.AutoScalerMax
		told.Runtime = count(w.provisioner.db, `SELECT count(*) FROM runtimes WHERE id = ? AND deleted_at IS NULL`, row.RuntimeID) == 1
	}

	return told
}

type brokerPlay = crashtest.Run[environment.Data]

// ownParameters order the cluster of a tenant.
func ownParameters() string {
	return fmt.Sprintf(`{"kubeconfig": %q, "shootName": "own", "shootDomain": "own.example.com"}`,
		base64.StdEncoding.EncodeToString([]byte(ownKubeconfig)))
}

// brokerSceneOf makes a scene on new databases. In some it is a matter of chance how far the creation gets that is ended.
type brokerSceneOf func(name, kind string, chance bool, tell func(w *brokerWorld, play *brokerPlay) []string) crashtest.Scenario[environment.Data]

func newBrokerScene(t *testing.T, ground ground, open database) brokerSceneOf {
	t.Helper()

	offer, err := catalog.Load(resources.Catalog(), catalog.Options{KubernetesVersion: "1.35.4", OperationTimeout: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}

	shootName := regexp.MustCompile(`c-[0-9a-f]{7}`)

	return func(name, kind string, chance bool, tell func(w *brokerWorld, play *brokerPlay) []string) crashtest.Scenario[environment.Data] {
		return crashtest.Scenario[environment.Data]{Name: name, Kind: kind, Open: func(t *testing.T) crashtest.Env[environment.Data] {
			t.Helper()

			w := newBroker(t, open(t), ground, offer)

			return crashtest.Env[environment.Data]{
				Store: w.operations, Processes: w.processes, Upstream: func() any { return w.outside(chance) },
				AnyData: chance, Random: shootName,
				Script: func(play *brokerPlay) []string { return tell(w, play) },
			}
		}}
	}
}

func brokerScenes(t *testing.T, ground ground, open database) []crashtest.Scenario[environment.Data] {
	t.Helper()

	scene := newBrokerScene(t, ground, open)

	return []crashtest.Scenario[environment.Data]{
		scene("provision", environment.KindProvision, false, func(w *brokerWorld, play *brokerPlay) []string {
			play.InjectFaults()

			id := w.ask(http.MethodPut)
			play.Await(id)

			return []string{id}
		}),
		scene("provision-own-cluster", environment.KindProvision, false, func(w *brokerWorld, play *brokerPlay) []string {
			play.InjectFaults()

			id := w.askFor(http.MethodPut, instance, planOwnCluster, ownParameters())
			play.Await(id)

			return []string{id}
		}),
		scene("deprovision-own-cluster", environment.KindDeprovision, false, func(w *brokerWorld, play *brokerPlay) []string {
			play.Await(w.askFor(http.MethodPut, instance, planOwnCluster, ownParameters()))
			play.InjectFaults()

			id := w.askFor(http.MethodDelete, instance, planOwnCluster, `{}`)
			play.Await(id)

			return []string{id}
		}),
		scene("deprovision", environment.KindDeprovision, false, func(w *brokerWorld, play *brokerPlay) []string {
			play.Await(w.ask(http.MethodPut))
			play.InjectFaults()

			id := w.ask(http.MethodDelete)
			play.Await(id)

			return []string{id}
		}),
		scene("bind", environment.KindBind, false, func(w *brokerWorld, play *brokerPlay) []string {
			play.Await(w.ask(http.MethodPut))
			play.InjectFaults()

			id := w.askFor(http.MethodPut, access1, planAWS, `{}`)
			play.Await(id)

			return []string{id}
		}),
		scene("unbind", environment.KindUnbind, false, func(w *brokerWorld, play *brokerPlay) []string {
			play.Await(w.ask(http.MethodPut))
			play.Await(w.askFor(http.MethodPut, access1, planAWS, `{}`))
			play.InjectFaults()

			id := w.askFor(http.MethodDelete, access1, planAWS, `{}`)
			play.Await(id)

			return []string{id}
		}),
		scene("unbind-during-bind", environment.KindUnbind, true, func(w *brokerWorld, play *brokerPlay) []string {
			play.Await(w.ask(http.MethodPut))
			play.InjectFaults()
			w.askFor(http.MethodPut, access1, planAWS, `{}`)
			play.Sleep(binding)

			id := w.askFor(http.MethodDelete, access1, planAWS, `{}`)
			play.Await(id)

			return []string{id}
		}),
		scene("deprovision-during-creation", environment.KindDeprovision, true, func(w *brokerWorld, play *brokerPlay) []string {
			play.InjectFaults()
			w.ask(http.MethodPut)
			play.Sleep(creation)

			id := w.ask(http.MethodDelete)
			play.Await(id)

			return []string{id}
		}),
		scene("update", environment.KindUpdate, false, func(w *brokerWorld, play *brokerPlay) []string {
			play.Await(w.ask(http.MethodPut))
			play.InjectFaults()

			id := w.change(`"parameters": {"autoScalerMax": 30}`)
			play.Await(id)

			return []string{id}
		}),
		scene("deprovision-during-update", environment.KindDeprovision, true, func(w *brokerWorld, play *brokerPlay) []string {
			play.Await(w.ask(http.MethodPut))
			play.InjectFaults()
			w.change(`"parameters": {"autoScalerMax": 30}`)
			play.Sleep(change)

			id := w.ask(http.MethodDelete)
			play.Await(id)

			return []string{id}
		}),
		scene("suspend", environment.KindSuspend, false, func(w *brokerWorld, play *brokerPlay) []string {
			play.Await(w.orderTrial())
			play.InjectFaults()

			id := w.change(`"context": {"active": false}`)
			play.Await(id)

			return []string{id}
		}),
		scene("resume", environment.KindResume, false, func(w *brokerWorld, play *brokerPlay) []string {
			play.Await(w.orderTrial())
			play.Await(w.change(`"context": {"active": false}`))
			play.InjectFaults()

			id := w.change(`"context": {"active": true}`)
			play.Await(id)

			return []string{id}
		}),
	}
}
