package operator_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// bound stores a ready binding of instance one, and the operation that creates it, in the given state.
func (b *bench) bound(id string, state process.State, changes ...func(*environment.Binding)) environment.Binding {
	b.Helper()
	b.clock.SetTime(b.clock.Now().Add(time.Second))

	made := environment.Binding{
		ID: "account-" + id, InstanceID: "one", BindingID: id, RuntimeID: "runtime-one", Role: environment.RoleView,
		State: environment.BindingReady, OperationID: b.operation(environment.BindingKey("one", id), environment.KindBind, state),
		CreatedBy: "someone", CreatedAt: b.clock.Now(), ExpiresAt: b.clock.Now().Add(time.Hour),
		Access: environment.Access{Kubeconfig: "hush-hush", Server: "https://hush-hush.example.com"},
	}
	for _, change := range changes {
		change(&made)
	}

	if err := b.db.InTx(b.Context(), func(tx storage.Tx) error { return b.bindings.Insert(b.Context(), tx, made) }); err != nil {
		b.Fatal(err)
	}

	return made
}

func TestBindingsOfAnInstance(t *testing.T) {
	onEach(t, func(b *bench) {
		b.instance("one", process.Succeeded)
		b.instance("two", process.Succeeded)

		expired := b.bound("expired", process.Succeeded, func(made *environment.Binding) { made.ExpiresAt = made.CreatedAt })
		b.bound("orphaned", process.Succeeded, func(made *environment.Binding) { made.RuntimeID = "former" })
		b.bound("creating", process.Pending, func(made *environment.Binding) { made.State = environment.BindingCreating })
		b.bound("ready", process.Succeeded)

		got := b.want("a list", b.do("viewer", "GET", "/runtimes/one/bindings"), http.StatusOK)
		if strings.Contains(got.Raw, "hush") {
			b.Error("the list contains credentials")
		}

		listed := read[operatorapi.BindingList](b, got).Data

		var states []string
		for _, binding := range listed {
			states = append(states, binding.BindingID+" is "+binding.State)
		}

		if diff := cmp.Diff([]string{"ready is ready", "creating is creating", "orphaned is orphaned", "expired is expired"}, states); diff != "" {
			b.Fatalf("-want +got\n%s", diff)
		}

		want := operatorapi.Binding{
			BindingID: "expired", InstanceID: "one", State: "expired", Role: "view", Account: "environment-broker-binding-account-expired",
			CreatedBy: "someone", OperationID: expired.OperationID, CreatedAt: expired.CreatedAt, ExpiresAt: expired.ExpiresAt,
		}
		if diff := cmp.Diff(want, listed[3]); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}

		if others := list[operatorapi.BindingList](b, "/runtimes/two/bindings"); len(others.Data) != 0 || others.Data == nil {
			b.Errorf("bindings of another instance: %v", others)
		}

		b.want("bindings of an unknown instance", b.do("viewer", "GET", "/runtimes/three/bindings"), http.StatusNotFound)
	})
}

func TestOperationsOnBindings(t *testing.T) {
	onEach(t, func(b *bench) {
		b.instance("one", process.Succeeded)
		failed := b.bound("failed", process.Failed, func(made *environment.Binding) { made.State = environment.BindingCreating })

		found := list[operatorapi.OperationList](b, "/operations?instance_id=one&binding_id=failed").Data
		if len(found) != 1 || found[0].ID != failed.OperationID || found[0].InstanceID != "one" || found[0].BindingID != "failed" {
			b.Errorf("found %+v", found)
		}

		if of := list[operatorapi.OperationList](b, "/operations?instance_id=one").Data; len(of) != 1 || of[0].Kind != environment.KindProvision {
			b.Errorf("operations of the instance: %+v", of)
		}

		b.want("a binding of an unknown instance", b.do("viewer", "GET", "/operations?binding_id=failed"), http.StatusBadRequest)

		const onlyReason = `{"reason": "it answers again"}`

		refused := b.want("the job removes the binding", b.intervene("retry", failed.OperationID, onlyReason), http.StatusConflict)
		if !strings.Contains(refused.Raw, "A bind cannot be retried") {
			b.Errorf("the retry of a bind is refused with %s", refused.Raw)
		}

		b.clock.SetTime(b.clock.Now().Add(time.Second))
		failed.OperationID = b.operation(environment.BindingKey("one", "failed"), environment.KindUnbind, process.Failed)

		retried := b.want("a failed operation on a binding", b.intervene("retry", failed.OperationID, onlyReason), http.StatusAccepted)
		if next := read[operatorapi.Operation](b, retried); next.BindingID != "failed" || next.PredecessorID != failed.OperationID {
			b.Errorf("the retry is %+v", next)
		}

		if answer := b.audit("?instance_id=one"); len(answer) != 1 || answer[0].InstanceID != "one" || answer[0].BindingID != "failed" {
			b.Errorf("entries of the instance: %+v", answer)
		}

		b.want("the operation was already retried", b.intervene("retry", failed.OperationID, onlyReason), http.StatusConflict)

		lost := b.operation(environment.BindingKey("gone", "x"), environment.KindBind, process.Failed)
		b.want("the instance was deleted", b.intervene("retry", lost, onlyReason), http.StatusConflict)
	})
}
