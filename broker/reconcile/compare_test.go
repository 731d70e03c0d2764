package reconcile_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/reconcile"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/endpoints"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// fixture is a Comparer and a Provisioner that serves runtimes over HTTP.
type fixture struct {
	*testing.T
	*reconcile.Comparer

	runtimes []operatorapi.Runtime
	// vanishing are the IDs of runtimes that are deleted after they were read once.
	vanishing []string
	read      map[string]bool
	reported  operatorapi.DifferenceList
}

func onEach(t *testing.T, test func(f *fixture)) {
	t.Helper()

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()

		f, keys, ctx := &fixture{T: t, read: map[string]bool{}}, storagetest.Keys(t), t.Context()
		clock := clocktesting.NewFakePassiveClock(now)

		orders, err := operations.Open(ctx, db, keys)
		if err != nil {
			t.Fatal(err)
		}

		rows, err := instances.Open(ctx, db, keys)
		if err != nil {
			t.Fatal(err)
		}

		access, err := bindings.Open(ctx, db, keys)
		if err != nil {
			t.Fatal(err)
		}

		addresses, err := endpoints.Open(ctx, db, keys)
		if err != nil {
			t.Fatal(err)
		}

		left, err := leftovers.Open(ctx, db)
		if err != nil {
			t.Fatal(err)
		}

		objects, err := outsideobjects.Open(ctx, db, keys)
		if err != nil {
			t.Fatal(err)
		}

		entries, err := auditlog.Open(ctx, db, time.Hour)
		if err != nil {
			t.Fatal(err)
		}

		server := httptest.NewServer(f)
		t.Cleanup(server.Close)

		address, err := url.Parse(server.URL + "/graphql")
		if err != nil {
			t.Fatal(err)
		}

		f.Comparer = &reconcile.Comparer{
			DB: db, Instances: rows, Operations: orders, Bindings: access, Endpoints: addresses, Leftovers: left, Objects: objects,
			Recorder:    audit.NewRecorder(entries, db, clock, logging.Discard()),
			Provisioner: reconcile.NewProvisioner(address, http.DefaultTransport), Accounts: f, Clock: clock, Log: logging.Discard(),
		}
		test(f)
	})
}

// Accounts implements reconcile.Accounts.
func (*fixture) Accounts(context.Context, environment.Instance) ([]string, error) { return nil, nil }

// ServeHTTP serves the operator API of the Provisioner.
func (f *fixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, one := strings.CutPrefix(r.URL.Path, "/runtimes/")

	switch index := slices.IndexFunc(f.runtimes, func(each operatorapi.Runtime) bool { return each.RuntimeID == id }); {
	case r.URL.Path == "/differences":
		respond(w, f.reported)
	case one && index < 0:
		w.WriteHeader(http.StatusNotFound)
	case one:
		found := f.runtimes[index]
		if slices.Contains(f.vanishing, id) && f.read[id] {
			found.Status.State = operatorapi.RuntimeStateDeleted
		}

		f.read[id] = true
		respond(w, found)
	default:
		list := operatorapi.RuntimeList{Data: []operatorapi.Runtime{}}
		ids := strings.Split(r.URL.Query().Get("ids"), ",")

		for _, each := range f.runtimes {
			if !r.URL.Query().Has("ids") || slices.Contains(ids, each.RuntimeID) {
				list.Data = append(list.Data, each)
			}
		}

		respond(w, list)
	}
}

func respond(w http.ResponseWriter, body any) {
	encoded, err := json.Marshal(body)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
	}

	_, _ = w.Write(encoded)
}

func instance(id string) environment.Instance {
	return environment.Instance{
		ID: id, ShootName: "c-" + id, RuntimeID: "r-" + id, GlobalAccountID: "acme", PlanName: "aws", Platform: "default",
		SubscriptionAccountID: "former", CreatedAt: now.Add(-time.Hour), UpdatedAt: now.Add(-time.Hour),
		Request: environment.Request{Parameters: json.RawMessage(`{"a":1}`)},
	}
}

// store stores an instance and an operation that ended at the time, or that has not ended if the time is zero.
func (f *fixture) store(stored environment.Instance, ended time.Time) {
	f.Helper()

	if err := f.DB.InTx(f.Context(), func(tx storage.Tx) error {
		insertion, err := f.Instances.Insertion(stored)
		if err == nil {
			err = storage.Apply(f.Context(), tx, insertion)
		}

		if err == nil {
			err = f.Instances.Update(f.Context(), tx, stored)
		}

		if err != nil {
			return err
		}

		operation, err := environment.NewOperation(environment.KindProvision, stored, nil, ended)
		if err != nil || ended.IsZero() {
			operation.At = now

			return f.Operations.Accept(f.Context(), tx, operation)
		}

		return f.Operations.InsertSucceeded(f.Context(), tx, operation)
	}); err != nil {
		f.Fatal(err)
	}
}

// runtime adds a runtime with the client data, whose operation ended an hour ago.
func (f *fixture) runtime(id string, data any) *operatorapi.Runtime {
	f.Helper()

	encoded, err := json.Marshal(data)
	if err != nil {
		f.Fatal(err)
	}

	f.runtimes = append(f.runtimes, operatorapi.Runtime{
		InstanceID: "r-" + id, RuntimeID: "r-" + id, ShootName: "c-" + id, ClientData: string(encoded),
		Status: operatorapi.RuntimeStatus{
			State:         operatorapi.RuntimeStateSucceeded,
			LastOperation: operatorapi.Operation{State: operatorapi.OperationStateSucceeded, FinishedAt: now.Add(-time.Hour)},
		},
	})

	return &f.runtimes[len(f.runtimes)-1]
}

// compare returns the differences by ID.
func (f *fixture) compare() map[string]operatorapi.Difference {
	f.Helper()

	page, err := f.Compare(f.Context(), operatorserver.Comparison{Limit: 100})
	if err != nil || page.Next != "" || len(page.Incomplete) > 0 {
		f.Fatalf("got %+v, %v", page, err)
	}

	found := map[string]operatorapi.Difference{}
	for _, each := range page.Differences {
		found[each.ID] = each
	}

	return found
}

func TestCompare(t *testing.T) {
	onEach(t, func(f *fixture) {
		old := now.Add(-time.Hour)

		// Both sides agree, or an operation is in flight.
		f.store(instance("same"), old)
		f.runtime("same", instance("same"))
		f.store(instance("ordering"), time.Time{})
		f.store(instance("just"), now.Add(-time.Second))
		f.runtime("creating", instance("creating")).Status.LastOperation.State = operatorapi.OperationStateInProgress
		f.runtime("created", instance("created")).Status.LastOperation.FinishedAt = now

		suspended := instance("suspended")
		suspended.RuntimeID, suspended.Suspended = "", true
		f.store(suspended, old)

		// Differences.
		f.store(instance("gone"), old)
		f.runtime("lost", instance("lost"))
		f.runtime("foreign", "theirs")
		f.runtime("vanished", instance("vanished"))
		f.vanishing = []string{"r-vanished"}

		moved := instance("moved")
		moved.RuntimeID = "r-same"
		f.store(moved, old)
		f.runtime("moved", instance("moved"))

		renamed := instance("renamed")
		renamed.ShootName = "c-other"
		f.runtime("renamed", renamed)

		f.reported = operatorapi.DifferenceList{Data: []operatorapi.Difference{{Kind: operatorapi.DifferenceKindRuntimeWithoutShoot, ID: "r-x"}}}

		wanted := map[string]string{ // the reason, or the kind if a difference has no reason
			"gone": "instance-without-runtime", "r-x": "runtime-without-shoot", "r-lost": "restorable",
			"r-foreign": "does not describe an instance", "r-vanished": "state of the runtime is deleted", "r-moved": "exists and has another runtime",
			"r-renamed": "a different Shoot, c-other",
		}
		found := f.compare()

		for id, want := range wanted {
			got := found[id]
			if got.Restorable != (want == "restorable") || !got.Restorable && !strings.Contains(string(got.Kind)+" "+got.Reason, want) {
				f.Errorf("%s: want %q, got %+v", id, want, got)
			}

			delete(found, id)
		}

		if len(found) > 0 {
			f.Errorf("these are not differences: %+v", found)
		}
	})
}

func TestRestore(t *testing.T) {
	onEach(t, func(f *fixture) {
		f.runtime("lost", instance("lost"))

		difference := f.compare()["r-lost"]
		for range 2 { // a repetition changes nothing
			if err := f.Restore(f.Context(), difference); err != nil || len(f.compare()) > 0 {
				f.Fatalf("%v, %v", err, f.compare())
			}
		}

		restored, err := f.Instances.Get(f.Context(), f.DB.Reader(), "lost")
		if diff := cmp.Diff(instance("lost"), restored); diff != "" || err != nil {
			f.Errorf("%v: -want +got\n%s", err, diff)
		}

		for what, query := range map[string]string{
			"the entry of the audit log":           `SELECT count(*) FROM audit WHERE action = 'restore' AND instance_id = 'lost'`,
			"the search for the cluster's address": `SELECT count(*) FROM endpoints WHERE id = 'lost'`,
			"the operation":                        `SELECT count(*) FROM operations WHERE instance_id = 'lost' AND state = 'succeeded' AND kind = 'provision'`,
		} {
			if rows, err := storage.Get[int](f.Context(), f.DB.Reader(), query); err != nil || rows != 1 {
				f.Errorf("%s: want one row, got %d, %v", what, rows, err)
			}
		}

		if err := f.Restore(f.Context(), operatorapi.Difference{Kind: operatorapi.DifferenceKindShootWithoutRuntime}); err == nil {
			f.Error("the broker cannot restore rows of the Provisioner")
		}
	})
}

// leave stores the leftover of a deleted instance, whose deletion has not completed the steps.
func (f *fixture) leave(deleted environment.Instance, steps ...string) {
	f.Helper()

	deletion, err := environment.NewOperation(environment.KindDeprovision, deleted, nil, now.Add(-time.Hour))
	if err != nil {
		f.Fatal(err)
	}

	if err := f.DB.InTx(f.Context(), func(tx storage.Tx) error {
		if err := f.Operations.InsertSucceeded(f.Context(), tx, deletion); err != nil {
			return err
		}

		record, err := f.Operations.Get(f.Context(), tx, deletion.ID)
		if err != nil {
			return err
		}

		return f.Leftovers.Add(f.Context(), tx, environment.NewLeftover(record, deleted, steps, now.Add(-time.Hour)))
	}); err != nil {
		f.Fatal(err)
	}
}

// TestRuntimesOfLeftovers checks that the runtimes of leftovers are not restored as instances, and that they are differences only if
// no cleanup removes them.
func TestRuntimesOfLeftovers(t *testing.T) {
	unknown, other := instance("unknown"), instance("other")
	unknown.RuntimeID, other.RuntimeID = "", "r-former"

	cases := map[string]struct {
		reason     string
		deleted    environment.Instance
		steps      []string
		listed     bool
		restorable bool
	}{
		"removed": {"a cleanup removes the runtime", instance("removed"), []string{"EDP_Deregistration", "Remove_Runtime"}, false, false},
		"awaited": {"a cleanup waits for the removal", instance("awaited"), []string{"Check_Runtime_Removal"}, false, false},
		"unknown": {"the ID of the runtime never reached the broker", unknown, []string{"Remove_Runtime"}, false, false},
		"back":    {"the Provisioner has the removed runtime again, and no cleanup removes it", instance("back"), []string{"EDP_Deregistration"}, true, false},
		"other":   {"the Shoot belongs to another runtime now", other, []string{"Remove_Runtime"}, true, true},
	}

	onEach(t, func(f *fixture) {
		suspended := instance("suspended")
		f.leave(suspended, "Remove_Runtime")
		f.runtime("suspended", suspended)

		suspended.RuntimeID, suspended.Suspended = "", true
		f.store(suspended, now.Add(-time.Hour))

		for id, c := range cases {
			f.leave(c.deleted, c.steps...)
			f.runtime(id, instance(id))
		}

		found := f.compare()
		if suspended, listed := found["r-suspended"]; listed {
			f.Errorf("a cleanup removes the runtime of the suspended instance: %+v", suspended)
		}

		for id, c := range cases {
			difference, listed := found["r-"+id]
			if listed != c.listed || difference.Restorable != c.restorable {
				f.Errorf("%s: %s: got %t, %+v", id, c.reason, listed, difference)
			}

			err := f.Restore(f.Context(), operatorapi.Difference{
				Kind: operatorapi.DifferenceKindRuntimeWithoutInstance, RuntimeID: "r-" + id, ShootName: "c-" + id,
			})
			if failure.Is(err, failure.Conflict) == c.restorable || c.restorable && err != nil {
				f.Errorf("%s: %s: the restoration returns %v", id, c.reason, err)
			}

			if exists, err := f.Instances.Exists(f.Context(), f.DB.Reader(), id); exists != c.restorable || err != nil {
				f.Errorf("%s: %s: the instance exists: %t, %v", id, c.reason, exists, err)
			}
		}
	})
}

// TestDeletionDuringARestoration checks that a restoration also fails if a deletion adds the leftover after the restoration has looked
// for it.
func TestDeletionDuringARestoration(t *testing.T) {
	onEach(t, func(f *fixture) {
		f.leave(instance("deleted"), "Remove_Runtime")

		if err := f.DB.InTx(f.Context(), func(tx storage.Tx) error {
			return f.Insert(f.Context(), tx, instance("deleted"))
		}); !failure.Is(err, failure.Conflict) {
			f.Errorf("the insertion returns %v", err)
		}

		if exists, err := f.Instances.Exists(f.Context(), f.DB.Reader(), "deleted"); exists || err != nil {
			f.Errorf("the deleted instance exists: %t, %v", exists, err)
		}
	})
}
