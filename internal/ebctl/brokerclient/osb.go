package brokerclient

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"
)

// apiVersion is the version of the Open Service Broker API that this package implements.
const apiVersion = "2.17"

// Accepted is the response to a request that creates, changes or deletes an instance.
type Accepted struct {
	// Operation is the ID of the operation that the broker started, or empty if the request is already complete.
	Operation string
	// DashboardURL is the URL of the instance's dashboard, or empty.
	DashboardURL string
}

// Catalog returns the catalog for platforms in platformRegion, such as cf-eu10. If platformRegion is empty, the region that In
// has set applies. Without any region, the request path contains none.
func (c *Client) Catalog(ctx context.Context, platformRegion string) (apiresponses.CatalogResponse, error) {
	return callFor[apiresponses.CatalogResponse](ctx, c, c.osb(http.MethodGet, platformRegion, "catalog"))
}

// Provision creates an instance. The platform region is part of the request path, as for Catalog. The request is idempotent.
func (c *Client) Provision(ctx context.Context, platformRegion, instanceID string, details domain.ProvisionDetails,
) (Accepted, error) {
	request := c.osb(http.MethodPut, platformRegion, "service_instances", instanceID)
	request.body = details

	return c.change(ctx, request)
}

// Update is the body of an update request. Empty fields are omitted, and the broker leaves their values unchanged.
type Update struct {
	ServiceID       string                  `json:"service_id"`
	PlanID          string                  `json:"plan_id,omitempty"`
	Context         json.RawMessage         `json:"context,omitempty"`
	Parameters      json.RawMessage         `json:"parameters,omitempty"`
	MaintenanceInfo *domain.MaintenanceInfo `json:"maintenance_info,omitempty"`
}

// Update changes an instance. The request is idempotent.
func (c *Client) Update(ctx context.Context, instanceID string, update Update) (Accepted, error) {
	request := c.osb(http.MethodPatch, "", "service_instances", instanceID)
	request.body = update

	return c.change(ctx, request)
}

// Deprovision deletes an instance. The request is idempotent.
func (c *Client) Deprovision(ctx context.Context, instanceID string, details domain.DeprovisionDetails) (Accepted, error) {
	request := c.osb(http.MethodDelete, "", "service_instances", instanceID)
	request.query = url.Values{"service_id": {details.ServiceID}, "plan_id": {details.PlanID}}

	return c.change(ctx, request)
}

// change sends a request to which the broker may respond with 202 and the ID of an operation.
func (c *Client) change(ctx context.Context, request request) (Accepted, error) {
	if request.query == nil {
		request.query = url.Values{}
	}

	request.query.Set("accepts_incomplete", "true")

	// The responses to provision, update and deprovision requests contain a subset of these fields.
	var body apiresponses.ProvisioningResponse

	got, err := c.call(ctx, request, &body)
	if err != nil {
		return Accepted{}, err
	}

	accepted := Accepted{DashboardURL: body.DashboardURL}
	if got.status == http.StatusAccepted {
		accepted.Operation = body.OperationData
	}

	return accepted, nil
}

// Instance returns an instance with its parameters. It fails if the instance is not ready yet.
func (c *Client) Instance(ctx context.Context, instanceID string) (apiresponses.GetInstanceResponse, error) {
	return callFor[apiresponses.GetInstanceResponse](ctx, c, c.osb(http.MethodGet, "", "service_instances", instanceID))
}

// BindingOrder is the body of a request to create a binding. Without parameters, the new binding gets the role and the lifetime
// of the predecessor or, if there is no predecessor, the broker's defaults.
type BindingOrder struct {
	ServiceID   string            `json:"service_id"`
	PlanID      string            `json:"plan_id"`
	Predecessor string            `json:"predecessor_binding_id,omitempty"`
	Parameters  BindingParameters `json:"parameters,omitzero"`
}

// BindingParameters are the role and the lifetime of a binding. The role is admin, edit or view.
type BindingParameters struct {
	Role              string `json:"role,omitempty"`
	ExpirationSeconds int    `json:"expiration_seconds,omitempty"`
}

// Binding is temporary access to the cluster of an instance. The kubeconfig expires at ExpiresAt; platforms should rotate the
// binding at RenewBefore.
type Binding struct {
	Credentials struct {
		Kubeconfig string `json:"kubeconfig"`
	} `json:"credentials"`
	Parameters BindingParameters `json:"parameters"`
	Metadata   struct {
		ExpiresAt   time.Time `json:"expires_at"`
		RenewBefore time.Time `json:"renew_before"`
	} `json:"metadata"`
}

// Bind creates a binding. The broker responds once the credentials work. The request is idempotent.
func (c *Client) Bind(ctx context.Context, instanceID, bindingID string, order BindingOrder) (Binding, error) {
	request := c.osb(http.MethodPut, "", "service_instances", instanceID, "service_bindings", bindingID)
	request.body = order

	return callFor[Binding](ctx, c, request)
}

// Binding returns an existing binding with its credentials.
func (c *Client) Binding(ctx context.Context, instanceID, bindingID string) (Binding, error) {
	return callFor[Binding](ctx, c, c.osb(http.MethodGet, "", "service_instances", instanceID, "service_bindings", bindingID))
}

// Unbind deletes a binding. The broker responds once the ServiceAccount in the cluster is deleted. The request is idempotent.
func (c *Client) Unbind(ctx context.Context, instanceID, bindingID, serviceID, planID string) error {
	request := c.osb(http.MethodDelete, "", "service_instances", instanceID, "service_bindings", bindingID)
	request.query = url.Values{"service_id": {serviceID}, "plan_id": {planID}}

	_, err := callFor[struct{}](ctx, c, request)

	return err
}

// osb returns a request with the headers of the Open Service Broker API. Its path starts with /oauth/{region}/v2 if
// platformRegion or the client's own region is not empty, and with /v2 otherwise. platformRegion takes precedence.
func (c *Client) osb(method, platformRegion string, segments ...string) request {
	header := http.Header{}
	header.Set("X-Broker-Api-Version", apiVersion)
	header.Set("X-Broker-Api-Request-Identity", c.config.NewID())

	var path strings.Builder

	if region := cmp.Or(platformRegion, c.platformRegion); region != "" {
		path.WriteString("/oauth/" + url.PathEscape(region))
	}

	path.WriteString("/v2")

	for _, segment := range segments {
		path.WriteString("/" + url.PathEscape(segment))
	}

	return request{method: method, path: path.String(), header: header}
}
