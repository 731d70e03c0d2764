package broker

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/rest"
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

// fetchedBinding is the answer to a request for a binding that is ready. The library's form lacks metadata and endpoints.
type fetchedBinding struct {
	Credentials credentials       `json:"credentials"`
	Parameters  bindingParameters `json:"parameters"`
	Endpoints   []bindingEndpoint `json:"endpoints"`
	Metadata    bindingMetadata   `json:"metadata"`
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

// bindingAnswer shows a binding with its credentials, which no proxy may keep.
func bindingAnswer(status int, binding environment.Binding) (rest.Answer, error) {
	server, err := url.Parse(binding.Access.Server)
	if err != nil || server.Hostname() == "" {
		return rest.Answer{}, fmt.Errorf("binding %s has no address of an API server", binding.ID) // the address may hold more
	}

	return rest.Answer{
		Status: status,
		Header: http.Header{"Cache-Control": {"no-store"}},
		Body: fetchedBinding{
			Credentials: credentials{Kubeconfig: binding.Access.Kubeconfig.Reveal()},
			Parameters:  bindingParameters{Role: binding.Role, ExpirationSeconds: int(binding.Lifetime / time.Second)},
			Endpoints: []bindingEndpoint{{
				Host: server.Hostname(), Ports: []string{firstOf(server.Port(), "443")}, Protocol: "tcp",
			}},
			Metadata: bindingMetadata{
				ExpiresAt:   binding.ExpiresAt.UTC().Format(bindingTime),
				RenewBefore: binding.ExpiresAt.Add(-binding.Lifetime / renewShare).UTC().Format(bindingTime),
			},
		},
	}, nil
}
