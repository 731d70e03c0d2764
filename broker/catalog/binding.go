package catalog

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// How long the credentials of a binding may be good for. Gardener and Kubernetes make none for less than ten minutes.
const (
	shortestBinding = 10 * time.Minute
	longestBinding  = 2 * time.Hour
)

// BindingParameters are what a request for a binding may say, defaults resolved.
type BindingParameters struct {
	Role     environment.Role
	Lifetime time.Duration
}

// bindingRoles lists the roles in the order of a form; the first one is the default, as platforms expect full access.
func bindingRoles() []string {
	return []string{string(environment.RoleAdmin), string(environment.RoleEdit), string(environment.RoleView)}
}

// bindingForm is what ResolveBinding takes.
func bindingForm() (form, error) {
	return newForm("bindings", map[string]any{
		"role": map[string]any{
			"type": "string", "title": "Role", "enum": bindingRoles(), "default": bindingRoles()[0],
			"description": "What the credentials allow in the whole cluster: everything, to change workloads, or to look at them.",
		},
		"expiration_seconds": map[string]any{
			"type": "integer", "title": "Lifetime in seconds", "default": seconds(shortestBinding),
			"minimum": seconds(shortestBinding), "maximum": seconds(longestBinding),
			"description": "How long the credentials are good for.",
		},
	}, []string{"role", "expiration_seconds"}, nil)
}

// ResolveBinding reads the parameters of a binding. What is wrong with them is an error of kind invalid that names the field.
func ResolveBinding(raw json.RawMessage) (BindingParameters, error) {
	given := struct {
		Role              *string  `json:"role"`
		ExpirationSeconds *float64 `json:"expiration_seconds"`
	}{}

	if len(raw) > 0 && string(raw) != "null" {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.DisallowUnknownFields()

		if err := decoder.Decode(&given); err != nil {
			return BindingParameters{}, failure.Wrap(failure.Invalid, err,
				"parameters: a binding takes role, a string, and expiration_seconds, an integer, and nothing else")
		}
	}

	resolved := BindingParameters{Role: environment.Role(bindingRoles()[0]), Lifetime: shortestBinding}

	if given.Role != nil {
		if !contains(bindingRoles(), *given.Role) {
			return resolved, failure.New(failure.Invalid, "parameters: role: has to be one of %s", strings.Join(bindingRoles(), ", "))
		}

		resolved.Role = environment.Role(*given.Role)
	}

	if given.ExpirationSeconds != nil {
		wanted := *given.ExpirationSeconds
		if wanted != float64(int(wanted)) || wanted < float64(seconds(shortestBinding)) || wanted > float64(seconds(longestBinding)) {
			return resolved, failure.New(failure.Invalid, "parameters: expiration_seconds: has to be an integer from %d to %d",
				seconds(shortestBinding), seconds(longestBinding))
		}

		resolved.Lifetime = time.Duration(wanted) * time.Second
	}

	return resolved, nil
}

func seconds(d time.Duration) int { return int(d / time.Second) }
