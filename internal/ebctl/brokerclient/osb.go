package brokerclient

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"
)

// apiVersion is the version of Open Service Broker that this package speaks.
const apiVersion = "2.17"

// Accepted is how far the broker got with an instance when it answered.
type Accepted struct {
	// Operation is the id of the work that goes on, empty when there is nothing left to do.
	Operation string
	// DashboardURL leads to the instance's page, if it has one.
	DashboardURL string
}

// Catalog returns what the broker offers on the platform region, or by default.
func (c *Client) Catalog(ctx context.Context, platformRegion string) (apiresponses.CatalogResponse, error) {
	var catalog apiresponses.CatalogResponse

	_, err := c.call(ctx, c.osb(http.MethodGet, osbPath(platformRegion, "catalog")), &catalog)

	return catalog, err
}

// Provision asks for an instance, in the name of the platform region unless that is empty. The same request may be sent again.
func (c *Client) Provision(ctx context.Context, platformRegion, instanceID string, details domain.ProvisionDetails,
) (Accepted, error) {
	request := c.osb(http.MethodPut, osbPath(platformRegion, "service_instances", instanceID))
	request.query = url.Values{"accepts_incomplete": {"true"}}
	request.body = details

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

// Update is what is to change of an instance. What is empty stays as it is.
type Update struct {
	ServiceID       string                  `json:"service_id"`
	PlanID          string                  `json:"plan_id,omitempty"`
	Context         json.RawMessage         `json:"context,omitempty"`
	Parameters      json.RawMessage         `json:"parameters,omitempty"`
	MaintenanceInfo *domain.MaintenanceInfo `json:"maintenance_info,omitempty"`
}

// Update asks for an instance to be changed. The same request may be sent again.
func (c *Client) Update(ctx context.Context, instanceID string, update Update) (Accepted, error) {
	request := c.osb(http.MethodPatch, osbPath("", "service_instances", instanceID))
	request.query = url.Values{"accepts_incomplete": {"true"}}
	request.body = update

	var body apiresponses.UpdateResponse

	got, err := c.call(ctx, request, &body)
	if err != nil || got.status != http.StatusAccepted {
		return Accepted{}, err
	}

	return Accepted{Operation: body.OperationData, DashboardURL: body.DashboardURL}, nil
}

// Deprovision asks for an instance to be removed. The same request may be sent again.
func (c *Client) Deprovision(ctx context.Context, instanceID string, details domain.DeprovisionDetails) (Accepted, error) {
	request := c.osb(http.MethodDelete, osbPath("", "service_instances", instanceID))
	request.query = url.Values{
		"accepts_incomplete": {"true"},
		"service_id":         {details.ServiceID},
		"plan_id":            {details.PlanID},
	}

	var body apiresponses.DeprovisionResponse

	got, err := c.call(ctx, request, &body)
	if err != nil || got.status != http.StatusAccepted {
		return Accepted{}, err
	}

	return Accepted{Operation: body.OperationData}, nil
}

// Instance fetches an instance with its parameters. There is none to fetch before it is ready.
func (c *Client) Instance(ctx context.Context, instanceID string) (apiresponses.GetInstanceResponse, error) {
	var instance apiresponses.GetInstanceResponse

	_, err := c.call(ctx, c.osb(http.MethodGet, osbPath("", "service_instances", instanceID)), &instance)

	return instance, err
}

// osb returns a request with the headers of the protocol.
func (c *Client) osb(method, path string) request {
	header := http.Header{}
	header.Set("X-Broker-Api-Version", apiVersion)
	header.Set("X-Broker-Api-Request-Identity", c.config.NewID())

	return request{method: method, path: path, header: header}
}

// osbPath returns the path below the platform region's entrance, or below the general one.
func osbPath(platformRegion string, segments ...string) string {
	path := "/v2"
	if platformRegion != "" {
		path = "/oauth/" + url.PathEscape(platformRegion) + path
	}

	return path + joined(segments)
}

// joined returns the segments of a path, each escaped.
func joined(segments []string) string {
	var path strings.Builder
	for _, segment := range segments {
		path.WriteString("/" + url.PathEscape(segment))
	}

	return path.String()
}
