package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// fetchBinding handles GET …/service_bindings/{binding_id}. The response contains the credentials and the
// parameters. The response is 404 if the credentials do not work: they have expired or are being removed, or the instance is not
// active or has another runtime.
func (a *api) fetchBinding(r request) (httpserver.Response, error) {
	binding, err := snapshot(r.Context(), a, func(tx storage.Tx) (environment.Binding, error) {
		return a.usableBinding(r.Context(), tx, r)
	})
	if err != nil {
		return httpserver.Response{}, err
	}

	return a.issueBinding(r.Request, http.StatusOK, binding, &bindingParameters{
		Role: binding.Role, ExpirationSeconds: int(binding.Lifetime / time.Second),
	})
}

// usableBinding returns the binding if it has credentials, has not expired, and is not being removed, and if its instance is
// active. The request may omit the service ID and the plan ID.
func (a *api) usableBinding(ctx context.Context, tx storage.Tx, r request) (environment.Binding, error) {
	var err error
	if r.instanceID, err = a.lookupID(ctx, tx, r.instanceID); err != nil {
		return environment.Binding{}, err
	}

	instance, err := a.Instances.Get(ctx, tx, r.instanceID)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return environment.Binding{}, notFound(textNoInstance)
	case err != nil:
		return environment.Binding{}, err
	case cmp.Or(r.query.Get("service_id"), instance.ServiceID) != instance.ServiceID,
		cmp.Or(r.query.Get("plan_id"), instance.PlanID) != instance.PlanID:
		return environment.Binding{}, notFound(textNoBinding)
	}

	a.notePlan(ctx, instance.PlanID)

	past, err := a.Operations.OfInstance(ctx, tx, r.instanceID)
	if err != nil {
		return environment.Binding{}, err
	}

	binding, err := a.Bindings.Get(ctx, tx, r.instanceID, r.bindingID)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return binding, notFound(textNoBinding)
	case err != nil:
		return binding, err
	case binding.State != environment.BindingReady, environment.PhaseOf(past) != environment.Active, !a.usable(binding, instance):
		return binding, notFound(textBindingNotReady)
	default:
		return binding, nil
	}
}

const (
	// bindingTime is the time format that the protocol prescribes.
	bindingTime = "2006-01-02T15:04:05.0Z"
	// renewShare determines renew_before: platforms should renew a binding when 1/renewShare of its lifetime is
	// left.
	renewShare = 5
)

// bindingOperation is the asynchronous response to a bind or unbind request.
type bindingOperation struct {
	Operation string `json:"operation"`
}

// bindingBody is the response to a bind or a fetch. It adds metadata and endpoints, which brokerapi's type lacks.
type bindingBody struct {
	Credentials credentials       `json:"credentials"`
	Endpoints   []bindingEndpoint `json:"endpoints,omitempty"`
	Metadata    bindingMetadata   `json:"metadata"`
	// Parameters are the resolved parameters, with defaults. They are nil in the response to a bind.
	Parameters *bindingParameters `json:"parameters,omitempty"`
}

// credentials is the object that platforms pass on to the application.
type credentials struct {
	// Kubeconfig contains the token of the binding's ServiceAccount. Applications read it under this name.
	Kubeconfig string `json:"kubeconfig"`
}

// bindingParameters are the resolved parameters of a binding, under the names that bind requests use.
type bindingParameters struct {
	Role              environment.Role `json:"role"`
	ExpirationSeconds int              `json:"expiration_seconds"`
}

// bindingEndpoint is an address that the application connects to. Platforms can use it to allow network traffic to this address.
type bindingEndpoint struct {
	Host     string   `json:"host"`
	Ports    []string `json:"ports"`
	Protocol string   `json:"protocol"`
}

// bindingMetadata contains the times at which a binding expires and should be renewed, in the protocol's format.
// Platforms use them to schedule rotations.
type bindingMetadata struct {
	ExpiresAt   string `json:"expires_at"`
	RenewBefore string `json:"renew_before"`
}

// issueBinding returns the response to a bind or a fetch. The response forbids caching, because it contains credentials. If
// issueBinding cannot write the audit log entry for the response, it fails and returns no credentials. parameters is nil for the
// response to a bind.
func (a *api) issueBinding(r *http.Request, status int, binding environment.Binding, parameters *bindingParameters,
) (httpserver.Response, error) {
	body, err := bindingBodyOf(r, binding)
	if err != nil {
		return httpserver.Response{}, err
	}

	if err := a.Recorder.RecordAlone(r.Context(), auditlog.Entry{
		Action: auditlog.ActionCredentials, InstanceID: binding.InstanceID, BindingID: binding.BindingID, Status: status,
		After: auditlog.Fields{"role": binding.Role, "expiresAt": binding.ExpiresAt.UTC()},
	}); err != nil {
		return httpserver.Response{}, err
	}

	body.Parameters = parameters

	return httpserver.Response{Status: status, Header: http.Header{"Cache-Control": {"no-store"}}, Body: body}, nil
}

// bindingBodyOf converts a binding for the platform. It omits the endpoints for API versions that do not define them: the
// Kubernetes OSB client uses version 2.14, expects ports to be numbers, and would reject the whole response. The error never
// quotes the kubeconfig.
func bindingBodyOf(r *http.Request, binding environment.Binding) (bindingBody, error) {
	server, err := url.Parse(binding.Access.Server)
	if err != nil || server.Hostname() == "" {
		return bindingBody{}, fmt.Errorf("binding %s does not contain the address of an API server", binding.ID) // the address may contain secrets
	}

	body := bindingBody{
		Credentials: credentials{Kubeconfig: binding.Access.Kubeconfig.Reveal()},
		Metadata: bindingMetadata{
			ExpiresAt:   binding.ExpiresAt.UTC().Format(bindingTime),
			RenewBefore: binding.ExpiresAt.Add(-binding.Lifetime / renewShare).UTC().Format(bindingTime),
		},
	}

	if supports(r, bindingEndpoints) {
		body.Endpoints = []bindingEndpoint{{Host: server.Hostname(), Ports: []string{cmp.Or(server.Port(), "443")}, Protocol: "tcp"}}
	}

	return body, nil
}
