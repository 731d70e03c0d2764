package catalog

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// Bounds for the lifetime of binding credentials. Gardener and Kubernetes do not issue credentials for less than ten minutes.
const (
	minLifetime = 10 * time.Minute
	maxLifetime = 2 * time.Hour
)

// Names of the binding parameters.
const (
	paramRole     = "role"
	paramLifetime = "expiration_seconds"
)

// BindingParameters are the parameters of a binding, with defaults for absent ones. All plans have the same
// parameters.
type BindingParameters struct {
	Role environment.Role
	// Lifetime is how long the credentials are valid, in whole seconds.
	Lifetime time.Duration
}

// bindingRoles returns the roles in the order in which platforms display them. The first role, admin, is the default,
// because platforms expect full access.
func bindingRoles() []string {
	return []string{string(environment.RoleAdmin), string(environment.RoleEdit), string(environment.RoleView)}
}

// bindingForm returns the form for the parameters that ResolveBinding accepts.
func bindingForm() (form, error) {
	return newForm("bindings", map[string]any{
		paramRole: map[string]any{
			"type": "string", "title": "Role", "enum": bindingRoles(), "default": bindingRoles()[0],
			"description": "The cluster-wide permissions of the credentials: full access, editing workloads, or viewing workloads.",
		},
		paramLifetime: map[string]any{
			"type": "integer", "title": "Lifetime in seconds", "default": seconds(minLifetime),
			"minimum": seconds(minLifetime), "maximum": seconds(maxLifetime),
			"description": "How long the credentials are valid.",
		},
	}, []string{paramRole, paramLifetime}, nil)
}

// ResolveBinding decodes the parameters of a binding and adds defaults. Absent parameters and null are treated as an
// empty object. The error is of kind invalid and names the invalid parameters, at most maxViolations of them.
func ResolveBinding(raw json.RawMessage) (BindingParameters, error) {
	resolved := BindingParameters{Role: environment.Role(bindingRoles()[0]), Lifetime: minLifetime}

	var given map[string]any
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return resolved, failure.Wrap(failure.Invalid, err, "parameters: must be an object")
		}
	}

	var (
		violations Violations
		unknown    int
	)

	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]

		switch {
		case name != paramRole && name != paramLifetime:
			if unknown++; unknown > maxViolations {
				continue
			}

			violations.require(false, name, ruleUnknown, "bindings have no such parameter%s", failure.Suggestion(name, []string{paramRole, paramLifetime}))
		case value == nil: // null means absent
		case name == paramRole:
			role, _ := value.(string)
			violations.require(slices.Contains(bindingRoles(), role), name, "enum", "must be one of %s%s",
				strings.Join(bindingRoles(), ", "), failure.Suggestion(role, bindingRoles()))

			resolved.Role = environment.Role(role)
		default:
			wanted, _ := value.(float64)
			whole := wanted == math.Trunc(wanted) && wanted >= float64(seconds(minLifetime)) && wanted <= float64(seconds(maxLifetime))
			violations.require(whole, name, "range", "must be an integer from %d to %d", seconds(minLifetime), seconds(maxLifetime))

			resolved.Lifetime = time.Duration(wanted) * time.Second
		}
	}

	violations.limit(max(0, unknown-maxViolations))

	return resolved, violations.Err()
}

// seconds returns the duration in whole seconds, the unit of expiration_seconds.
func seconds(d time.Duration) int { return int(d / time.Second) }
