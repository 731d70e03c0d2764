package broker

import (
	"context"
	"errors"
	"net/http"

	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// provisioned is what came of a provision request. Without an operation the instance is ready.
type provisioned struct {
	instance  environment.Instance
	operation string
	accepted  bool
}

// provision answers PUT /v2/service_instances/{instance_id}.
func (a *api) provision(r *http.Request) (httpserver.Answer, error) {
	order, err := a.readOrder(r)
	if err != nil {
		return httpserver.Answer{}, err
	}

	var outcome provisioned

	err = unlessOvertaken(func() error {
		var err error

		outcome, err = a.place(r.Context(), order)

		return err
	})
	if err != nil {
		return httpserver.Answer{}, err
	}

	answer := httpserver.OK(apiresponses.ProvisioningResponse{
		DashboardURL:  outcome.instance.DashboardURL,
		OperationData: outcome.operation,
		Metadata:      a.metadata(outcome.instance),
	})

	if outcome.operation != "" {
		answer.Status = http.StatusAccepted
		httpserver.Note(r.Context(), logging.OperationID, outcome.operation)
	}

	if outcome.accepted {
		a.Wake()
	}

	return answer, nil
}

// place decides on an order: it begins something new, or tells how far the same order has come. Most ids were never used, so that is tried
// first, where nothing but the id can stand in the way: it takes one round trip to the database.
func (a *api) place(ctx context.Context, order order) (provisioned, error) {
	if order.refusal == nil && order.acceptsDeferred && order.instance.Exclusive == "" {
		outcome, err := a.begin(ctx, order, a.Operations.First)
		if !storage.IsDuplicate(err) {
			return outcome, err
		}
	}

	outcome, acceptance, err := a.look(ctx, order)
	if err != nil || acceptance == nil {
		return outcome, err
	}

	return a.begin(ctx, order, acceptance)
}

// look finds out what an order meets: an instance that is there, and then what came of it, or a free id, and then how the first
// operation of its new life is accepted.
func (a *api) look(ctx context.Context, order order) (provisioned, func(process.New) storage.Statement, error) {
	// It reads the instance before its operations: whoever sees an instance sees the operation that was stored together with it.
	existing, err := a.Instances.Get(ctx, a.DB.Reader(), order.instanceID)
	missing := errors.Is(err, storage.ErrNotFound)

	if err != nil && !missing {
		return provisioned{}, nil, err
	}

	newest, used, err := a.latest(ctx, a.DB.Reader(), order.instanceID, lifeKinds()...)

	switch {
	case err != nil:
		return provisioned{}, nil, err
	case !used:
		return provisioned{}, a.Operations.First, nil
	case beingDeleted(newest):
		return provisioned{}, nil, concurrent()
	case missing:
		return provisioned{}, a.Operations.Next, nil // the id had a former life
	case newest.Kind == environment.KindDeprovision && newest.State == process.Succeeded:
		return provisioned{}, nil, errOvertaken // its deletion ended between the looks
	default:
		outcome, err := repeated(existing, newest, order)

		return outcome, nil, err
	}
}

// begin stores the new instance with its first operation.
func (a *api) begin(ctx context.Context, order order, acceptance func(process.New) storage.Statement) (provisioned, error) {
	switch {
	case order.refusal != nil:
		return provisioned{}, order.refusal
	case !order.acceptsDeferred:
		return provisioned{}, asyncRequired()
	}

	if err := a.checkQuota(ctx, a.DB.Reader(), order.plan, order.requester.tenant, order.instanceID); err != nil {
		return provisioned{}, err
	}

	order.instance.ShootName = newShootName() // another one on each try: it may be taken

	insertion, err := a.Instances.Insertion(order.instance)
	if err != nil {
		return provisioned{}, err
	}

	operation, err := environment.NewOperation(environment.KindProvision, order.instance, nil, a.Clock.Now())
	if err != nil {
		return provisioned{}, err
	}

	if operation, err = ordered(ctx, operation, nil, &order.instance); err != nil {
		return provisioned{}, err
	}

	err = a.DB.ExecBatch(ctx, insertion, acceptance(operation))

	return provisioned{instance: order.instance, operation: operation.ID, accepted: true}, err
}

// repeated answers an order for an instance that exists.
func repeated(existing environment.Instance, newest process.Record, order order) (provisioned, error) {
	switch {
	case !sameOrder(existing, order):
		return provisioned{}, conflict(textOther)
	case newest.Kind == environment.KindDeprovision:
		return provisioned{}, conflict(textDeletionFailed)
	case newest.State == process.Succeeded:
		return provisioned{instance: existing}, nil
	case newest.State.Terminal():
		return provisioned{}, conflict(textProvisionFailed)
	case !order.acceptsDeferred:
		return provisioned{}, asyncRequired()
	default:
		return provisioned{instance: existing, operation: newest.ID}, nil
	}
}
