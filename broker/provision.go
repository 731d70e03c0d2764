package broker

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"

	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// provisionResult is the outcome of a provision request. Without an operation the instance is ready, and the
// platform gets a 200.
type provisionResult struct {
	outcome

	// instance is the new or existing instance, for the address of its dashboard.
	instance environment.Instance
}

// acceptance returns the statement that stores the provisioning of a new instance: Operations.First for an ID
// without operations, Operations.Next for the ID of a deleted instance. First is faster, and fails as a
// duplicate if the ID was used before.
type acceptance func(process.New) storage.Statement

// provision answers PUT /v2/service_instances/{instance_id}: 202 with the operation of this or an identical
// earlier request, 200 if the instance is ready, 409 if the ID belongs to a different order or to an instance
// whose creation or deletion failed.
func (a *api) provision(r request) (httpserver.Response, error) {
	request, err := a.readProvisionRequest(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	result, err := retryLostRace(func() (provisionResult, error) { return a.decideProvision(r.Context(), request) })
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

// decideProvision creates an instance, or returns the operation of an identical earlier request. If no instance has
// the ID, it is inserted without further reads if a used ID is the only possible conflict. Platforms such as Korifi
// repeat their requests until the instance is ready, so the read comes first: it needs no write lock.
func (a *api) decideProvision(ctx context.Context, request provisionRequest) (provisionResult, error) {
	exists, err := a.Instances.Exists(ctx, a.DB.Reader(), request.instance.ID)
	if err != nil {
		return provisionResult{}, err
	}

	if !exists && request.unavailable == nil && request.acceptsIncomplete && request.instance.Exclusive == "" {
		result, err := a.createInstance(ctx, request, a.Operations.First)
		if !storage.IsDuplicate(err) {
			return result, err
		}
	}

	result, accept, err := a.findExisting(ctx, request)
	if err != nil || accept == nil {
		return result, err
	}

	return a.createInstance(ctx, request, accept)
}

// findExisting returns the outcome of an identical earlier request. If the ID is free, it instead returns the
// acceptance of a new operation. The error is errLostRace if the instance was deleted between the two reads.
func (a *api) findExisting(ctx context.Context, request provisionRequest) (provisionResult, acceptance, error) {
	// The instance is read before its operations: a visible instance implies the operation that was stored with
	// it.
	existing, known, err := a.Instances.GetWithNewest(ctx, a.DB.Reader(), request.instance.ID, lifecycleKinds()...)
	missing := errors.Is(err, storage.ErrNotFound)

	if err != nil && !missing {
		return provisionResult{}, nil, err
	}

	newest, used, err := a.latest(ctx, a.DB.Reader(), request.instance.ID, lifecycleKinds()...)

	switch {
	case err != nil:
		return provisionResult{}, nil, err
	case !used:
		return provisionResult{}, a.Operations.First, nil
	case beingDeleted(newest):
		return provisionResult{}, nil, concurrent()
	case missing:
		return provisionResult{}, a.Operations.Next, nil
	case newest.ID != known, newest.Kind == environment.KindDeprovision && newest.State == process.Succeeded:
		return provisionResult{}, nil, errLostRace // it was deleted, and maybe ordered again, between the two reads
	default:
		result, err := repeatedProvision(existing, newest, request)

		return result, nil, err
	}
}

// createInstance stores the new instance and its first operation in one transaction. The error is a duplicate
// if a concurrent request took the ID, the quota or, by chance, the name of the Shoot; a repeated attempt then
// decides with the stored rows.
func (a *api) createInstance(ctx context.Context, request provisionRequest, accept acceptance) (provisionResult, error) {
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

	instance.ShootName = newShootName() // another one for each attempt: the last one may be taken

	insertion, err := a.Instances.Insertion(instance)
	if err != nil {
		return provisionResult{}, err
	}

	operation, err := a.newOperation(ctx, environment.KindProvision, nil, &instance, nil)
	if err != nil {
		return provisionResult{}, err
	}

	err = a.DB.ExecBatch(ctx, insertion, accept(operation))

	return provisionResult{outcome{operation.ID, true}, instance}, err
}

// repeatedProvision answers a request for an instance that exists. The newest operation is that of the last
// creation or deletion.
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

const (
	// shootNameLetters omits letters that are easily confused.
	shootNameLetters = "0123456789abcdefghjkmnpqrstvwxyz"
	// shootNameLength is the number of random letters, for 34 billion names. Gardener limits the name together
	// with that of its project to 21 characters.
	shootNameLength = 7
)

// newShootName returns a random name for a Shoot. The unique index on names rejects a name that is taken.
func newShootName() string {
	name := []byte("c-")
	for range shootNameLength {
		name = append(name, shootNameLetters[rand.IntN(len(shootNameLetters))])
	}

	return string(name)
}
