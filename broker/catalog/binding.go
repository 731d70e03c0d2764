package catalog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// Bounds of the lifetime of a binding's credentials. Gardener and Kubernetes do not issue credentials for less than
// ten minutes.
const (
	minLifetime = 10 * time.Minute
	maxLifetime = 2 * time.Hour
)

// BindingParameters are the parameters of a binding, with defaults. All plans have the same parameters.
type BindingParameters struct {
	Role environment.Role
	// Lifetime is how long the credentials are valid, in whole seconds.
	Lifetime time.Duration
}

// bindingRoles returns the roles in the order of the form. The first role is the default, because platforms expect
// full access.
func bindingRoles() []string {
	return []string{string(environment.RoleAdmin), string(environment.RoleEdit), string(environment.RoleView)}
}

// bindingForm returns the schema of the parameters that ResolveBinding accepts.
func bindingForm() (form, error) {
	return newForm("bindings", map[string]any{
		"role": map[string]any{
			"type": "string", "title": "Role", "enum": bindingRoles(), "default": bindingRoles()[0],
			"description": "The cluster-wide permissions of the credentials: full access, editing workloads, or viewing workloads.",
		},
		"expiration_seconds": map[string]any{
			"type": "integer", "title": "Lifetime in seconds", "default": seconds(minLifetime),
			"minimum": seconds(minLifetime), "maximum": seconds(maxLifetime),
			"description": "How long the credentials are valid.",
		},
	}, []string{"role", "expiration_seconds"}, nil)
}

// ResolveBinding decodes the parameters of a binding and adds defaults. Absent parameters and null are treated as
// an empty object. Errors are of kind invalid and name the field.
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
				"parameters: may contain only role, a string, and expiration_seconds, an integer")
		}
	}

	resolved := BindingParameters{Role: environment.Role(bindingRoles()[0]), Lifetime: minLifetime}

	if given.Role != nil {
		if !slices.Contains(bindingRoles(), *given.Role) {
			return resolved, failure.New(failure.Invalid, "parameters: role: must be one of %s", strings.Join(bindingRoles(), ", "))
		}

		resolved.Role = environment.Role(*given.Role)
	}

	if given.ExpirationSeconds != nil {
		wanted := *given.ExpirationSeconds
		if wanted != float64(int(wanted)) || wanted < float64(seconds(minLifetime)) || wanted > float64(seconds(maxLifetime)) {
			return resolved, failure.New(failure.Invalid, "parameters: expiration_seconds: must be an integer from %d to %d",
				seconds(minLifetime), seconds(maxLifetime))
		}

		resolved.Lifetime = time.Duration(wanted) * time.Second
	}

	return resolved, nil
}

// seconds returns the duration in whole seconds, the unit of the parameters.
func seconds(d time.Duration) int { return int(d / time.Second) }
