package broker

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
)

const (
	// bindingTime is the protocol's form of times.
	bindingTime = "2006-01-02T15:04:05.0Z"
	// renewShare is which part of its lifetime before its end a binding is to be renewed.
	renewShare = 5
)

// bindingOperation is the answer to a request that is carried out later.
type bindingOperation struct {
	Operation string `json:"operation"`
}

// boundBinding is the answer to a bind that is ready. The library's form lacks metadata and endpoints.
type boundBinding struct {
	Credentials credentials       `json:"credentials"`
	Endpoints   []bindingEndpoint `json:"endpoints,omitempty"`
	Metadata    bindingMetadata   `json:"metadata"`
}

// fetchedBinding is the answer to a fetch. Only this one tells the parameters.
type fetchedBinding struct {
	boundBinding

	Parameters bindingParameters `json:"parameters"`
}

type credentials struct {
	Kubeconfig string `json:"kubeconfig"`
}

type bindingParameters struct {
	Role              environment.Role `json:"role"`
	ExpirationSeconds int              `json:"expiration_seconds"`
}

type bindingEndpoint struct {
	Host     string   `json:"host"`
	Ports    []string `json:"ports"`
	Protocol string   `json:"protocol"`
}

type bindingMetadata struct {
	ExpiresAt   string `json:"expires_at"`
	RenewBefore string `json:"renew_before"`
}

// bindAnswer shows a binding to whoever has made it.
func bindAnswer(r *http.Request, status int, binding environment.Binding) (httpserver.Answer, error) {
	body, err := shown(r, binding)

	return confidential(status, body), err
}

// fetchAnswer shows a binding to whoever asks for it.
func fetchAnswer(r *http.Request, binding environment.Binding) (httpserver.Answer, error) {
	body, err := shown(r, binding)

	return confidential(http.StatusOK, fetchedBinding{
		boundBinding: body,
		Parameters:   bindingParameters{Role: binding.Role, ExpirationSeconds: int(binding.Lifetime / time.Second)},
	}), err
}

// confidential answers what no proxy may keep.
func confidential(status int, body any) httpserver.Answer {
	return httpserver.Answer{Status: status, Header: http.Header{"Cache-Control": {"no-store"}}, Body: body}
}

// shown is what platforms see of a binding. Endpoints are for those that know them: the client of Kubernetes, which speaks 2.14, takes
// their ports for numbers and reads no answer that has them.
func shown(r *http.Request, binding environment.Binding) (boundBinding, error) {
	server, err := url.Parse(binding.Access.Server)
	if err != nil || server.Hostname() == "" {
		return boundBinding{}, fmt.Errorf("binding %s has no address of an API server", binding.ID) // the address may hold more
	}

	body := boundBinding{
		Credentials: credentials{Kubeconfig: binding.Access.Kubeconfig.Reveal()},
		Metadata: bindingMetadata{
			ExpiresAt:   binding.ExpiresAt.UTC().Format(bindingTime),
			RenewBefore: binding.ExpiresAt.Add(-binding.Lifetime / renewShare).UTC().Format(bindingTime),
		},
	}

	if speaks(r, endpointsTold) {
		body.Endpoints = []bindingEndpoint{{Host: server.Hostname(), Ports: []string{firstOf(server.Port(), "443")}, Protocol: "tcp"}}
	}

	return body, nil
}
