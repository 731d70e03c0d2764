package broker

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// bindRequest is a bind request that has passed all checks that do not need the database.
type bindRequest struct {
	instanceID, bindingID string
	// serviceID and planID may be empty if the request names a predecessor.
	serviceID, planID string
	// predecessor is the ID of the binding that the new binding replaces in a rotation, or empty.
	predecessor string
	// parameters include the defaults for missing values. given reports whether the request contained parameters.
	parameters catalog.BindingParameters
	given      bool
	// account is the global account in the context, or empty.
	account string
	// appGUID is the ID of the application that receives the credentials, or empty.
	appGUID string
	// createdBy is the end user that the request names, or else the authenticated user. It is empty without authentication.
	createdBy string
	// async reports whether the platform polls last_operation instead of waiting for the response.
	async bool
}

// bindResult is the outcome of a bind request. If it has no operation, the binding is ready.
type bindResult struct {
	outcome

	binding environment.Binding
}

// bind handles PUT …/service_bindings/{binding_id}. If the binding already exists and is ready, the response is 200
// with the credentials. Otherwise it is 202 with the operation, or, if the platform does not poll, 201 with the
// credentials after the operation has succeeded.
func (a *api) bind(r request) (httpserver.Response, error) {
	request, err := readBindRequest(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	result, err := decide(r.Context(), a, func(tx storage.Tx) (bindResult, error) { return a.decideBind(r.Context(), tx, request) })
	if err != nil {
		return httpserver.Response{}, err
	}

	a.started(r.Context(), result.outcome)

	if result.operation == "" {
		return a.issueBinding(r.Request, http.StatusOK, result.binding, nil)
	}

	if request.async {
		return httpserver.Response{Status: http.StatusAccepted, Body: bindingOperation{result.operation}}, nil
	}

	if err := a.awaitBinding(r.Context(), request.instanceID, result.operation); err != nil {
		return httpserver.Response{}, err
	}

	// Another request may have reused the binding ID after the operation ended. Do not return the credentials of that new
	// binding.
	ready, err := a.Bindings.Get(r.Context(), a.DB.Reader(), request.instanceID, request.bindingID)
	if errors.Is(err, storage.ErrNotFound) || err == nil && (ready.State != environment.BindingReady || ready.OperationID != result.operation) {
		return httpserver.Response{}, conflict(textBindingGone)
	}

	if err != nil {
		return httpserver.Response{}, err
	}

	return a.issueBinding(r.Request, http.StatusCreated, ready, nil)
}

// readBindRequest reads and checks the request. Its errors can be sent to the platform. decideBind checks the service
// and plan IDs against the instance, because a request with a predecessor may omit them.
func readBindRequest(r request) (bindRequest, error) {
	sent, request := r.body, bindRequest{instanceID: r.instanceID, bindingID: r.bindingID}
	request.predecessor = sent.label("predecessor_binding_id")

	read := sent.required
	if request.predecessor != "" {
		read = sent.text
	}

	request.serviceID, request.planID = read("service_id"), read("plan_id")

	resource, context := sent.inner("bind_resource"), sent.inner("context")
	request.appGUID = cmp.Or(resource.label("app_guid"), sent.label("app_guid"))
	request.createdBy = cmp.Or(
		audit.ActorOf(r.Context()).Originator, context.label("email"), context.label("user_id"), audit.ActorOf(r.Context()).User,
	)
	request.account = context.label("globalaccount_id")
	request.async = r.acceptsIncomplete() && supports(r.Request, asyncBindings)

	raw := sent.object("parameters")
	request.given = !sameObject(raw, nil)

	if err := errors.Join(sent.err, resource.err, context.err); err != nil {
		return request, err
	}

	var err error

	request.parameters, err = catalog.ResolveBinding(raw)

	return request, err
}

// decideBind decides on the request inside the transaction. It locks the instance first, so that concurrent
// requests for bindings of the instance run one after another.
func (a *api) decideBind(ctx context.Context, tx storage.Tx, request bindRequest) (bindResult, error) {
	var err error
	if request.instanceID, err = a.lookupID(ctx, tx, request.instanceID); err != nil {
		return bindResult{}, err
	}

	instance, err := a.bindableInstance(ctx, tx, request)
	if err != nil {
		return bindResult{}, err
	}

	existing, err := a.Bindings.Get(ctx, tx, request.instanceID, request.bindingID)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return bindResult{}, err
	}

	if err == nil {
		result, free, err := a.repeatedBind(ctx, tx, request, instance, existing)
		if err != nil || !free {
			return result, err
		}
	}

	return a.newBinding(ctx, tx, request, instance)
}

// bindableInstance locks and returns the instance. It returns an error if the request names another account, service
// or plan, or if the instance has no runtime, and a ConcurrencyError while an operation creates or removes the
// runtime. Updates of the runtime do not prevent bindings.
func (a *api) bindableInstance(ctx context.Context, tx storage.Tx, request bindRequest) (environment.Instance, error) {
	present, err := a.Instances.Lock(ctx, tx, request.instanceID)
	if err != nil {
		return environment.Instance{}, err
	}

	past, err := a.Operations.OfInstance(ctx, tx, request.instanceID)
	if err != nil {
		return environment.Instance{}, err
	}

	phase := environment.PhaseOf(past)
	if phase == environment.Deleting { // check this first: older replicas delete the row before the operation ends
		return environment.Instance{}, concurrent()
	}

	if !present { // do not read the row now: past lacks the operation of an instance that was created after Lock
		return environment.Instance{}, notFound(textNoInstance)
	}

	instance, err := a.Instances.Get(ctx, tx, request.instanceID)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return instance, notFound(textNoInstance)
	case err != nil:
		return instance, err
	case checkReached(ctx, instance) != nil:
		return instance, errLostRace
	case request.account != "" && request.account != instance.GlobalAccountID:
		return instance, invalid(textOtherAccount)
	case request.serviceID != "" && request.serviceID != instance.ServiceID || request.planID != "" && request.planID != instance.PlanID:
		return instance, wrongIDs(instance)
	case phase == environment.Creating, phase == environment.Suspending, phase == environment.Resuming:
		return instance, concurrent()
	case phase != environment.Active, instance.RuntimeID == "":
		return instance, unprocessable("", textNotBindable)
	default:
		return instance, nil
	}
}

// repeatedBind handles a request for a binding that already exists. free reports whether the request can reuse the ID
// for a new binding, because the existing credentials do not work or their creation or removal failed. The
// ServiceAccount of the old binding is then removed from the cluster in the background.
func (a *api) repeatedBind(ctx context.Context, tx storage.Tx, request bindRequest, instance environment.Instance,
	existing environment.Binding,
) (result bindResult, free bool, err error) {
	operation, err := a.operationOn(ctx, tx, existing)
	if err != nil {
		return bindResult{}, false, err
	}

	running := !operation.State.Terminal()

	switch {
	case existing.State == environment.BindingDeleting && running:
		return bindResult{}, false, concurrent()
	case existing.State == environment.BindingDeleting:
		return bindResult{}, true, nil // the removal failed; the ExpiryOfBindings job repeats it
	case existing.State == environment.BindingCreating && !running, existing.State == environment.BindingReady && !a.usable(existing, instance):
		_, err := a.removeBinding(ctx, tx, instance, existing, "")

		return bindResult{}, true, err
	case !request.matches(existing):
		return bindResult{}, false, conflict(textOtherBinding)
	case existing.State == environment.BindingReady:
		return bindResult{binding: existing}, false, nil
	default:
		return bindResult{outcome{operation: operation.ID}, existing}, false, nil
	}
}

// operationOn returns the operation that creates or removes the binding. It is not always the newest operation with the binding's
// key: the ExpiryOfBindings job can repeat the removal of an earlier binding with the same ID at any time. If retention has removed
// the operation, operationOn returns a failed one.
func (a *api) operationOn(ctx context.Context, tx storage.Tx, binding environment.Binding) (process.Record, error) {
	operation, err := a.Operations.Get(ctx, tx, binding.OperationID)
	if errors.Is(err, storage.ErrNotFound) {
		return process.Record{ID: binding.OperationID, State: process.Failed}, nil
	}

	return operation, err
}

// matches reports whether the request equals the one that created the existing binding. A request with a predecessor
// may omit the parameters.
func (b bindRequest) matches(existing environment.Binding) bool {
	parameters := catalog.BindingParameters{Role: existing.Role, Lifetime: existing.Lifetime}

	return existing.Predecessor == b.predecessor && existing.AppGUID == b.appGUID &&
		(parameters == b.parameters || b.predecessor != "" && !b.given)
}

// newBinding stores a binding and the operation that creates it. Concurrent requests cannot exceed the limit,
// because the caller holds the lock on the instance.
func (a *api) newBinding(ctx context.Context, tx storage.Tx, request bindRequest, instance environment.Instance) (bindResult, error) {
	parameters, err := a.inherited(ctx, tx, request, instance)
	if err != nil {
		return bindResult{}, err
	}

	now := storage.At(a.Clock.Now()).Time

	live, err := a.Bindings.CountLive(ctx, tx, instance.ID, instance.RuntimeID, now)
	if err != nil {
		return bindResult{}, err
	}

	if live >= a.BindingLimit {
		return bindResult{}, failure.New(failure.Quota,
			"The instance already has the maximum number of bindings, %d. Remove one, or wait until one expires.", a.BindingLimit)
	}

	binding := environment.Binding{
		ID: uuid.NewString(), InstanceID: instance.ID, BindingID: request.bindingID, RuntimeID: instance.RuntimeID,
		Role: parameters.Role, Lifetime: parameters.Lifetime, Predecessor: request.predecessor, AppGUID: request.appGUID,
		CreatedBy: request.createdBy, State: environment.BindingCreating, OperationID: uuid.NewString(),
		CreatedAt: now, ExpiresAt: now.Add(parameters.Lifetime),
	}

	operation, err := environment.NewBindingOperation(environment.KindBind, binding.OperationID, instance, binding, now)
	if err != nil {
		return bindResult{}, err
	}

	if err := a.Bindings.Insert(ctx, tx, binding); err != nil {
		return bindResult{}, err
	}

	entry := auditlog.Entry{After: binding.Shown()}
	if operation, err = a.withBindingAudit(ctx, tx, operation, binding, entry); err != nil {
		return bindResult{}, err
	}

	return bindResult{outcome{operation.ID, true}, binding}, a.Operations.Accept(ctx, tx, operation)
}

// inherited returns the parameters of the new binding: the predecessor's if the request names one, and otherwise those in
// the request.
func (a *api) inherited(ctx context.Context, tx storage.Tx, request bindRequest, instance environment.Instance) (catalog.BindingParameters, error) {
	if request.predecessor == "" {
		return request.parameters, nil
	}

	predecessor, err := a.Bindings.Get(ctx, tx, request.instanceID, request.predecessor)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return catalog.BindingParameters{}, err
	}

	if err != nil || predecessor.State != environment.BindingReady || !a.usable(predecessor, instance) {
		return catalog.BindingParameters{}, invalid("predecessor_binding_id does not name a usable binding of this instance.")
	}

	parameters := catalog.BindingParameters{Role: predecessor.Role, Lifetime: predecessor.Lifetime}
	if request.given && request.parameters != parameters {
		return parameters, invalid("parameters must be absent or equal to those of the predecessor.")
	}

	return parameters, nil
}

// usable reports whether the credentials of a ready binding work: they must not have expired, and must belong to the
// instance's current runtime.
func (a *api) usable(binding environment.Binding, instance environment.Instance) bool {
	return binding.ExpiresAt.After(a.Clock.Now()) && binding.RuntimeID == instance.RuntimeID
}
