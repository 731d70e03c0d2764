package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/rest"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// order is a provision request, read and checked as far as no stored instance is needed.
type order struct {
	instanceID      string
	region          string
	details         domain.ProvisionDetails
	plan            *catalog.Plan
	requester       requester
	acceptsDeferred bool
	// instance is what the order makes, unless refusal says why it cannot be made. That does not concern an order that is repeated:
	// the rules may have become stricter since.
	instance environment.Instance
	refusal  error
}

// provisioned is what came of a provision request. Without an operation the instance is ready.
type provisioned struct {
	instance  environment.Instance
	operation string
	accepted  bool
}

// provision answers PUT /v2/service_instances/{instance_id}.
func (a *api) provision(r *http.Request) (rest.Answer, error) {
	order, err := a.readOrder(r)
	if err != nil {
		return rest.Answer{}, err
	}

	var outcome provisioned

	err = unlessOvertaken(func() error {
		var err error

		outcome, err = a.place(r.Context(), order)

		return err
	})
	if err != nil {
		return rest.Answer{}, err
	}

	answer := rest.OK(apiresponses.ProvisioningResponse{
		DashboardURL:  outcome.instance.DashboardURL,
		OperationData: outcome.operation,
		Metadata:      a.metadata(outcome.instance),
	})

	if outcome.operation != "" {
		answer.Status = http.StatusAccepted
		rest.Note(r.Context(), logging.OperationID, outcome.operation)
	}

	if outcome.accepted {
		a.Wake()
	}

	return answer, nil
}

func (a *api) readOrder(r *http.Request) (order, error) {
	id, err := instanceID(r)
	if err != nil {
		return order{}, err
	}

	region, err := a.region(r)
	if err != nil {
		return order{}, err
	}

	values, err := query(r)
	if err != nil {
		return order{}, err
	}

	details, err := readDetails(r)
	if err != nil {
		return order{}, err
	}

	plan, err := a.Catalog.Plan(details.ServiceID, details.PlanID)
	if err != nil {
		return order{}, err
	}

	if info := details.MaintenanceInfo; info != nil && info.Version != plan.MaintenanceVersion() {
		return order{}, unprocessable(codeMaintenanceConflict, fmt.Sprintf(textMaintenance, plan.MaintenanceVersion()))
	}

	requester, err := newRequester(details, audit.ActorOf(r.Context()).Originator, a.Strict)
	if err != nil {
		return order{}, err
	}

	read := order{
		instanceID: id, region: region, details: details, plan: plan, requester: requester,
		acceptsDeferred: acceptsIncomplete(values),
	}
	read.instance, read.refusal = a.newInstance(read)

	if !plan.Offered() {
		read.refusal = invalid(textNotOffered)
	}

	return read, nil
}

func readDetails(r *http.Request) (domain.ProvisionDetails, error) {
	sent, err := readBody(r)
	if err != nil {
		return domain.ProvisionDetails{}, err
	}

	details := domain.ProvisionDetails{
		ServiceID:        sent.required("service_id"),
		PlanID:           sent.required("plan_id"),
		OrganizationGUID: sent.text("organization_guid"),
		SpaceGUID:        sent.text("space_guid"),
		RawContext:       sent.object("context"),
		RawParameters:    sent.object("parameters"),
		MaintenanceInfo:  sent.maintenance(),
	}

	return details, sent.err
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
func (a *api) look(ctx context.Context, order order) (provisioned, func(process.New) storage.Change, error) {
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
func (a *api) begin(ctx context.Context, order order, acceptance func(process.New) storage.Change) (provisioned, error) {
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

	err = a.DB.Together(ctx, insertion, acceptance(operation))

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

// sameOrder reports whether the order is the one by which the instance was made, whatever updates have made of it since. The context
// may differ: it follows the names that users give to organizations and spaces.
func sameOrder(existing environment.Instance, order order) bool {
	first := environment.Order{PlanID: existing.PlanID, Parameters: existing.Request.Parameters}
	if existing.Request.Order != nil {
		first = *existing.Request.Order
	}

	return existing.ServiceID == order.details.ServiceID &&
		first.PlanID == order.details.PlanID &&
		existing.PlatformRegion == order.region &&
		existing.Request.OrganizationGUID == order.details.OrganizationGUID &&
		existing.Request.SpaceGUID == order.details.SpaceGUID &&
		sameObject(first.Parameters, order.details.RawParameters)
}

// sameObject compares JSON objects whatever the order of their fields. None at all equals an empty one.
func sameObject(one, other json.RawMessage) bool {
	first, second := map[string]any{}, map[string]any{}

	return decode(one, &first) == nil && decode(other, &second) == nil && reflect.DeepEqual(first, second)
}

// known is what the catalog has to know of the order.
func (o order) known() catalog.Order {
	return catalog.Order{
		InstanceID:     o.instanceID,
		InstanceName:   o.requester.instanceName,
		PlatformRegion: o.region,
		User:           o.requester.user,
		Parameters:     o.details.RawParameters,
	}
}

func (a *api) newInstance(order order) (environment.Instance, error) {
	resolved, err := order.plan.Resolve(order.known())
	if err != nil {
		return environment.Instance{}, err
	}

	now := storage.At(a.Clock.Now()).Time

	return environment.Instance{
		Exclusive:       exclusive(order.plan, order.requester.tenant),
		ID:              order.instanceID,
		ServiceID:       order.details.ServiceID,
		PlanID:          order.details.PlanID,
		PlanName:        order.plan.Name,
		GlobalAccountID: order.requester.tenant,
		SubAccountID:    order.requester.subaccount,
		PlatformRegion:  order.region,
		Provider:        resolved.Provider,
		Region:          resolved.Region,
		Name:            resolved.Name,
		DashboardURL:    strings.ReplaceAll(a.DashboardURL, "{instance_id}", url.QueryEscape(order.instanceID)),
		Request: environment.Request{
			OrganizationGUID: order.details.OrganizationGUID,
			SpaceGUID:        order.details.SpaceGUID,
			Context:          order.details.RawContext,
			Parameters:       order.details.RawParameters,
			User:             order.requester.user,
			Cluster:          resolved.Cluster,
		},
		MaintenanceVersion: order.plan.MaintenanceVersion(),
		ExpiresAt:          a.Periods.End(order.plan.Name, now),
		CreatedAt:          now,
		UpdatedAt:          now,
	}, nil
}
