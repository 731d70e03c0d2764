package brokerclient

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// BindingOrder asks for a binding. What is empty is the broker's default, or that of the predecessor.
type BindingOrder struct {
	ServiceID   string            `json:"service_id"`
	PlanID      string            `json:"plan_id"`
	Predecessor string            `json:"predecessor_binding_id,omitempty"`
	Parameters  BindingParameters `json:"parameters,omitzero"`
}

// BindingParameters are what a binding allows, and for how long.
type BindingParameters struct {
	Role              string `json:"role,omitempty"`
	ExpirationSeconds int    `json:"expiration_seconds,omitempty"`
}

// Binding is access to the cluster of an instance.
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

// Bind makes a binding, and waits for it. The same request may be sent again.
func (c *Client) Bind(ctx context.Context, instanceID, bindingID string, order BindingOrder) (Binding, error) {
	request := c.osb(http.MethodPut, osbPath("", "service_instances", instanceID, "service_bindings", bindingID))
	request.body = order

	var made Binding

	_, err := c.call(ctx, request, &made)

	return made, err
}

// Binding fetches a binding with its credentials.
func (c *Client) Binding(ctx context.Context, instanceID, bindingID string) (Binding, error) {
	var binding Binding

	path := osbPath("", "service_instances", instanceID, "service_bindings", bindingID)
	_, err := c.call(ctx, c.osb(http.MethodGet, path), &binding)

	return binding, err
}

// Unbind removes a binding, and waits for that. The same request may be sent again.
func (c *Client) Unbind(ctx context.Context, instanceID, bindingID, serviceID, planID string) error {
	request := c.osb(http.MethodDelete, osbPath("", "service_instances", instanceID, "service_bindings", bindingID))
	request.query = url.Values{"service_id": {serviceID}, "plan_id": {planID}}

	_, err := c.call(ctx, request, &struct{}{})

	return err
}

// Bindings returns the bindings of an instance, without their credentials, the newest first.
func (c *Client) Bindings(ctx context.Context, instanceID string) (operatorapi.BindingList, error) {
	var list operatorapi.BindingList

	path := joined([]string{"runtimes", instanceID, "bindings"})
	_, err := c.call(ctx, request{method: http.MethodGet, path: path}, &list)

	return list, err
}
