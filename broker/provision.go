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

// provisionResult is the outcome of a provision request. Without an operation the instance is ready.
type provisionResult struct {
	outcome

	instance environment.Instance
}

// acceptance stores the first operation of an instance: Operations.First for an unused id, Operations.Next for one of a deleted instance.
type acceptance func(process.New) storage.Statement

// provision answers PUT /v2/service_instances/{instance_id}.
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

// decideProvision creates an instance, or reports the progress of an equal earlier request. Most ids are new, so an insertion is tried
// first where only a used id can make it fail: it takes one round trip to the database.
func (a *api) decideProvision(ctx context.Context, request provisionRequest) (provisionResult, error) {
	if request.unavailable == nil && request.acceptsIncomplete && request.instance.Exclusive == "" {
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

// findExisting returns the outcome of an identical earlier request. If the id is free, it instead returns the function that stores the
// operation: First, or Next if a deleted instance had the id.
func (a *api) findExisting(ctx context.Context, request provisionRequest) (provisionResult, acceptance, error) {
	// The instance is read before its operations: a visible instance implies the operation that was stored with it.
	existing, err := a.Instances.Get(ctx, a.DB.Reader(), request.instance.ID)
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
	case newest.Kind == environment.KindDeprovision && newest.State == process.Succeeded:
		return provisionResult{}, nil, errLostRace // its deletion succeeded between the two reads
	default:
		result, err := repeatedProvision(existing, newest, request)

		return result, nil, err
	}
}

// createInstance stores the new instance and its first operation in one transaction.
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

// repeatedProvision answers a request for an instance that exists.
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
	// shootNameLength is the number of random letters, for 34 billion names. Gardener limits the name together with that of its project
	// to 21 characters.
	shootNameLength = 7
)

// newShootName returns a random name for a Shoot.
func newShootName() string {
	name := []byte("c-")
	for range shootNameLength {
		name = append(name, shootNameLetters[rand.IntN(len(shootNameLetters))])
	}

	return string(name)
}
