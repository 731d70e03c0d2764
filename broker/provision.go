package broker

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// provisionResult is the outcome of a provision request. If it has no operation, the instance is ready and the
// response is 200.
type provisionResult struct {
	outcome

	// instance is the new or existing instance. The response contains the address of its dashboard.
	instance environment.Instance
}

// acceptance says how to store the first operation of a new instance.
type acceptance struct {
	// statement is Operations.First for an ID that was never used, and Operations.Next for the ID of a deleted instance.
	// If the ID was used before, the statement of Operations.First fails with a duplicate error.
	statement func(process.New) storage.Statement
	// former is the ID of the newest operation of the deleted instance, or empty.
	former string
}

// provision handles PUT /v2/service_instances/{instance_id}. The response is 202 with the operation of this request
// or of an identical earlier one, and 200 if the instance is ready. It is 409 if the ID belongs to a different
// order, or to an instance that could not be created or deleted.
func (a *api) provision(r request) (httpserver.Response, error) {
	request, err := a.readProvisionRequest(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	taken := 0

	result, err := retryLostRace(func() (provisionResult, error) {
		result, err := a.decideProvision(r.Context(), request, taken)
		// Other duplicate errors, such as the one after a race for the quota, must not change the Shoot name: the same order always
		// gets the same name.
		if storage.IsDuplicateOf(err, "instances", "shoot_name") {
			taken++
		}

		return result, err
	})
	if err != nil {
		return httpserver.Response{}, err
	}

	response := httpserver.OK(apiresponses.ProvisioningResponse{
		DashboardURL:  result.instance.DashboardURL,
		OperationData: result.operation,
		Metadata:      a.metadata(result.instance),
	})

	if result.operation != "" {
		response.Status = http.StatusAccepted
	}

	a.started(r.Context(), result.outcome)

	return response, nil
}

// decideProvision creates an instance, or returns the operation of an identical earlier request. If the creation can fail only
// because the ID was used before, decideProvision first tries to insert the instance without reading other rows. taken is the
// number of Shoot names that were tried and belong to other instances.
func (a *api) decideProvision(ctx context.Context, request provisionRequest, taken int) (provisionResult, error) {
	repeated, err := a.repeatsOnSQLite(ctx, request.instance.ID)
	if err != nil {
		return provisionResult{}, err
	}

	limited := request.instance.Exclusive != "" || a.Quotas.Concerns(request.instance)
	if !repeated && request.unavailable == nil && request.acceptsIncomplete && !limited {
		result, err := a.createInstance(ctx, request, acceptance{statement: a.Operations.First}, taken)
		if !storage.IsDuplicate(err) {
			return result, err
		}
	}

	result, accept, err := a.findExisting(ctx, request)
	if err != nil || accept.statement == nil {
		return result, err
	}

	return a.createInstance(ctx, request, accept, taken)
}

// repeatsOnSQLite reports whether the database is SQLite and the instance exists. Platforms such as Korifi repeat a
// request until the instance is ready. On SQLite, even an insert that fails has to wait for the only write lock, so
// reading first answers repeated requests sooner. On PostgreSQL, the read would only make each new instance slower.
func (a *api) repeatsOnSQLite(ctx context.Context, instanceID string) (bool, error) {
	if a.DB.Driver() != storage.DriverSQLite {
		return false, nil
	}

	return a.Instances.Exists(ctx, a.DB.Reader(), instanceID)
}

// findExisting returns the outcome of an identical earlier request. If the ID is free, it returns an acceptance for the new
// operation instead. The error is errLostRace if the instance was deleted between the two reads.
func (a *api) findExisting(ctx context.Context, request provisionRequest) (provisionResult, acceptance, error) {
	// Read the instance before its operations: if the instance is visible, the operation that was stored with it is
	// visible, too.
	existing, known, err := a.Instances.GetWithNewest(ctx, a.DB.Reader(), request.instance.ID, lifecycleKinds()...)
	missing := errors.Is(err, storage.ErrNotFound)

	if err != nil && !missing {
		return provisionResult{}, acceptance{}, err
	}

	if !missing && !callerOf(ctx).reaches(existing) {
		if !slices.Contains(existing.Platforms(), callerOf(ctx).Name) {
			audit.Mark(ctx, auditlog.CodeOtherPlatform)
		}

		return provisionResult{}, acceptance{}, conflict(textOther)
	}

	newest, used, err := a.latest(ctx, a.DB.Reader(), request.instance.ID, lifecycleKinds()...)

	switch {
	case err != nil:
		return provisionResult{}, acceptance{}, err
	case !used:
		return provisionResult{}, acceptance{statement: a.Operations.First}, nil
	case beingDeleted(newest):
		return provisionResult{}, acceptance{}, concurrent()
	case missing:
		return provisionResult{}, acceptance{a.Operations.Next, newest.ID}, nil
	case newest.ID != known, newest.Kind == environment.KindDeprovision && newest.State == process.Succeeded:
		return provisionResult{}, acceptance{}, errLostRace // the instance was deleted, and maybe ordered again, between the two reads
	default:
		result, err := repeatedProvision(existing, newest, request)

		return result, acceptance{}, err
	}
}

// createInstance stores the new instance and its first operation in one transaction. It returns a duplicate error if a
// concurrent request took the ID or the quota, or if another instance has the same Shoot name. The caller then decides again with
// the stored rows.
func (a *api) createInstance(ctx context.Context, request provisionRequest, accept acceptance, taken int) (provisionResult, error) {
	switch {
	case request.unavailable != nil:
		return provisionResult{}, request.unavailable
	case !request.acceptsIncomplete:
		return provisionResult{}, asyncRequired()
	}

	instance := request.instance
	if err := a.checkQuota(ctx, a.DB.Reader(), request.plan, instance.GlobalAccountID, instance.ID); err != nil {
		return provisionResult{}, err
	}

	instance.ShootName = shootName(instance, accept.former, taken)

	insertion, err := a.Instances.Insertion(instance)
	if err != nil {
		return provisionResult{}, err
	}

	operation, err := a.newOperation(ctx, environment.KindProvision, nil, &instance, nil)
	if err != nil {
		return provisionResult{}, err
	}

	err = a.storeInstance(ctx, instance, insertion, accept.statement(operation))

	return provisionResult{outcome{operation.ID, true}, instance}, err
}

// storeInstance executes the statements that add the instance and its first operation. If a quota applies to the instance, it
// checks the quota in the same transaction. Otherwise it executes both as a batch, which needs one round trip to PostgreSQL.
func (a *api) storeInstance(ctx context.Context, instance environment.Instance, insertion, acceptance storage.Statement) error {
	if !a.Quotas.Concerns(instance) {
		return a.DB.ExecBatch(ctx, insertion, acceptance)
	}

	return a.DB.InTx(ctx, func(tx storage.Tx) error {
		if err := quotaRefusal(a.Quotas.Create(ctx, tx, instance)); err != nil {
			return err
		}

		if err := storage.Apply(ctx, tx, insertion); err != nil {
			return err
		}

		return storage.Apply(ctx, tx, acceptance)
	})
}

// repeatedProvision handles a request for an existing instance. newest is the newest operation that creates or deletes the
// instance.
func repeatedProvision(existing environment.Instance, newest process.Record, request provisionRequest) (provisionResult, error) {
	switch {
	case !request.matches(existing):
		return provisionResult{}, conflict(textOther)
	case newest.Kind == environment.KindDeprovision:
		return provisionResult{}, conflict(textDeletionFailed)
	case newest.State == process.Succeeded:
		return provisionResult{instance: existing}, nil
	case newest.State.Terminal():
		return provisionResult{}, conflict(textProvisionFailed)
	case !request.acceptsIncomplete:
		return provisionResult{}, asyncRequired()
	default:
		return provisionResult{outcome{operation: newest.ID}, existing}, nil
	}
}
