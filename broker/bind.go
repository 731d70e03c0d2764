package broker

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// bindOrder is a request for a binding, read as far as no stored row is needed.
type bindOrder struct {
	instanceID, bindingID string
	// serviceID and planID may be empty where a predecessor is named.
	serviceID, planID string
	predecessor       string
	// parameters are the defaults where the request has none; given says whether it has.
	parameters catalog.BindingParameters
	given      bool
	appGUID    string
	createdBy  string
	// deferred says that the platform polls for the end.
	deferred bool
}

// bound is what came of such a request. Without an operation the binding is ready.
type bound struct {
	binding   environment.Binding
	operation string
	accepted  bool
}

// bind answers PUT …/service_bindings/{binding_id}. A platform that cannot poll waits for the same operation.
func (a *api) bind(r *http.Request) (httpserver.Answer, error) {
	order, err := readBindOrder(r)
	if err != nil {
		return httpserver.Answer{}, err
	}

	var outcome bound

	err = a.inTx(r.Context(), func(tx storage.Tx) error {
		var err error

		outcome, err = a.placeBinding(r.Context(), tx, order)

		return err
	})
	if err != nil {
		return httpserver.Answer{}, err
	}

	if outcome.accepted {
		a.Wake()
	}

	if outcome.operation == "" {
		return bindAnswer(r, http.StatusOK, outcome.binding)
	}

	httpserver.Note(r.Context(), logging.OperationID, outcome.operation)

	if order.deferred {
		return httpserver.Answer{Status: http.StatusAccepted, Body: bindingOperation{outcome.operation}}, nil
	}

	if err := a.await(r.Context(), outcome.operation); err != nil {
		return httpserver.Answer{}, err
	}

	ready, err := a.Bindings.Get(r.Context(), a.DB.Reader(), order.instanceID, order.bindingID)
	if errors.Is(err, storage.ErrNotFound) || err == nil && ready.State != environment.BindingReady {
		return httpserver.Answer{}, conflict(textBindingGone)
	}

	if err != nil {
		return httpserver.Answer{}, err
	}

	return bindAnswer(r, http.StatusCreated, ready)
}

func readBindOrder(r *http.Request) (bindOrder, error) {
	var order bindOrder

	var err error
	if order.instanceID, order.bindingID, err = bindingIDs(r); err != nil {
		return order, err
	}

	values, err := query(r)
	if err != nil {
		return order, err
	}

	sent, err := readBody(r)
	if err != nil {
		return order, err
	}

	order.predecessor = sent.label("predecessor_binding_id")

	read := sent.required
	if order.predecessor != "" {
		read = sent.text
	}

	order.serviceID, order.planID = read("service_id"), read("plan_id")

	resource, context := sent.inner("bind_resource"), sent.inner("context")
	order.appGUID = firstOf(resource.label("app_guid"), sent.label("app_guid"))
	order.createdBy = firstOf(audit.ActorOf(r.Context()).Originator, context.label("email"), context.label("user_id"))
	order.deferred = acceptsIncomplete(values) && speaks(r, deferredBinds)

	raw := sent.object("parameters")
	order.given = !sameObject(raw, nil)

	if err := errors.Join(sent.err, resource.err, context.err); err != nil {
		return order, err
	}

	order.parameters, err = catalog.ResolveBinding(raw)

	return order, err
}

// placeBinding decides on the request inside the transaction. To lock the instance first makes its bindings take turns.
func (a *api) placeBinding(ctx context.Context, tx storage.Tx, order bindOrder) (bound, error) {
	instance, err := a.bindable(ctx, tx, order)
	if err != nil {
		return bound{}, err
	}

	existing, err := a.Bindings.Get(ctx, tx, order.instanceID, order.bindingID)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return bound{}, err
	}

	if err == nil {
		outcome, over, err := a.repeatedBinding(ctx, tx, order, instance, existing)
		if err != nil || !over {
			return outcome, err
		}
	}

	return a.newBinding(ctx, tx, order, instance)
}

// bindable returns the instance, locked, unless it has no runtime to bind to.
func (a *api) bindable(ctx context.Context, tx storage.Tx, order bindOrder) (environment.Instance, error) {
	if _, err := a.Instances.Lock(ctx, tx, order.instanceID); err != nil {
		return environment.Instance{}, err
	}

	past, err := a.Operations.OfInstance(ctx, tx, order.instanceID)
	if err != nil {
		return environment.Instance{}, err
	}

	standing := environment.PhaseOf(past)
	if standing == environment.Deleting { // its row may be gone already
		return environment.Instance{}, concurrent()
	}

	instance, err := a.Instances.Get(ctx, tx, order.instanceID)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return instance, notFound(textNoInstance)
	case err != nil:
		return instance, err
	case order.serviceID != "" && order.serviceID != instance.ServiceID || order.planID != "" && order.planID != instance.PlanID:
		return instance, invalid("service_id or plan_id is not that of the instance.")
	case standing == environment.Creating, standing == environment.Suspending, standing == environment.Resuming:
		return instance, concurrent()
	case standing != environment.Active, instance.RuntimeID == "":
		return instance, unprocessable("", textNotBindable)
	default:
		return instance, nil
	}
}

// repeatedBinding answers a request for a binding that exists, unless that one is over: then it has it removed, and the id is free.
func (a *api) repeatedBinding(ctx context.Context, tx storage.Tx, order bindOrder, instance environment.Instance,
	existing environment.Binding,
) (outcome bound, over bool, err error) {
	newest, _, err := a.latest(ctx, tx, environment.BindingKey(order.instanceID, order.bindingID), bindingKinds()...)
	if err != nil {
		return bound{}, false, err
	}

	working := !newest.State.Terminal()

	switch {
	case existing.State == environment.BindingDeleting && working:
		return bound{}, false, concurrent()
	case existing.State == environment.BindingDeleting:
		return bound{}, true, nil // its removal failed, and is begun again when it has expired
	case existing.State == environment.BindingCreating && !working, existing.State == environment.BindingReady && !a.live(existing, instance):
		_, err := a.endBinding(ctx, tx, instance, existing)

		return bound{}, true, err
	case !sameBinding(existing, order):
		return bound{}, false, conflict(textOtherBinding)
	case existing.State == environment.BindingReady:
		return bound{binding: existing}, false, nil
	default:
		return bound{binding: existing, operation: newest.ID}, false, nil
	}
}

// sameBinding reports whether the request is the one by which the binding was made.
func sameBinding(existing environment.Binding, order bindOrder) bool {
	parameters := catalog.BindingParameters{Role: existing.Role, Lifetime: existing.Lifetime}

	return existing.Predecessor == order.predecessor && existing.AppGUID == order.appGUID &&
		(parameters == order.parameters || order.predecessor != "" && !order.given)
}

// newBinding stores a binding with the operation that makes it.
func (a *api) newBinding(ctx context.Context, tx storage.Tx, order bindOrder, instance environment.Instance) (bound, error) {
	parameters, err := a.inherited(ctx, tx, order, instance)
	if err != nil {
		return bound{}, err
	}

	now := storage.At(a.Clock.Now()).Time

	live, err := a.Bindings.CountLive(ctx, tx, instance.ID, instance.RuntimeID, now)
	if err != nil {
		return bound{}, err
	}

	if live >= a.BindingLimit {
		return bound{}, failure.New(failure.Quota,
			"The instance has %d bindings, and may have no more. Remove one, or wait until one expires.", live)
	}

	binding := environment.Binding{
		ID: uuid.NewString(), InstanceID: instance.ID, BindingID: order.bindingID, RuntimeID: instance.RuntimeID,
		Role: parameters.Role, Lifetime: parameters.Lifetime, Predecessor: order.predecessor, AppGUID: order.appGUID,
		CreatedBy: order.createdBy, State: environment.BindingCreating, OperationID: uuid.NewString(),
		CreatedAt: now, ExpiresAt: now.Add(parameters.Lifetime),
	}

	operation, err := environment.NewBindingOperation(environment.KindBind, binding.OperationID, instance, binding, now)
	if err != nil {
		return bound{}, err
	}

	if err := a.Bindings.Insert(ctx, tx, binding); err != nil {
		return bound{}, err
	}

	entry := auditlog.Entry{After: binding.Shown()}
	if operation, err = a.orderedBinding(ctx, tx, operation, binding, entry); err != nil {
		return bound{}, err
	}

	return bound{binding: binding, operation: operation.ID, accepted: true}, a.Operations.Accept(ctx, tx, operation)
}

// inherited returns the parameters of the request, or those of the predecessor that it names.
func (a *api) inherited(ctx context.Context, tx storage.Tx, order bindOrder, instance environment.Instance) (catalog.BindingParameters, error) {
	if order.predecessor == "" {
		return order.parameters, nil
	}

	former, err := a.Bindings.Get(ctx, tx, order.instanceID, order.predecessor)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return catalog.BindingParameters{}, err
	}

	if err != nil || former.State != environment.BindingReady || !a.live(former, instance) {
		return catalog.BindingParameters{}, invalid("predecessor_binding_id is not the id of a binding of this instance that is still good.")
	}

	parameters := catalog.BindingParameters{Role: former.Role, Lifetime: former.Lifetime}
	if order.given && order.parameters != parameters {
		return parameters, invalid("parameters have to be those of the predecessor, or to be left out.")
	}

	return parameters, nil
}

// live reports whether the credentials of the binding lead anywhere.
func (a *api) live(binding environment.Binding, instance environment.Instance) bool {
	return binding.ExpiresAt.After(a.Clock.Now()) && binding.RuntimeID == instance.RuntimeID
}

// bindingKinds are the kinds of operations on bindings.
func bindingKinds() []string { return []string{environment.KindBind, environment.KindUnbind} }
