package broker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/pivotal-cf/brokerapi/v10/domain"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
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
		OrganizationGUID: sent.label("organization_guid"),
		SpaceGUID:        sent.label("space_guid"),
		RawContext:       sent.object("context"),
		RawParameters:    sent.object("parameters"),
		MaintenanceInfo:  sent.maintenance(),
	}

	return details, sent.err
}

// sameOrder reports whether the order is the one by which the instance was made, whatever updates have made of it since. The context
// may differ: it follows the names that users give to organizations and spaces.
func sameOrder(existing environment.Instance, order order) bool {
	first := environment.InitialOrder{PlanID: existing.PlanID, Parameters: existing.Request.Parameters}
	if existing.Request.Initial != nil {
		first = *existing.Request.Initial
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
