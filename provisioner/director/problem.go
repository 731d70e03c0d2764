package director

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/graphqlclient"
)

// ErrTenantUnknown is in the chain of errors about an unknown tenant.
var ErrTenantUnknown = errors.New("the tenant is not known to Director")

// errUnauthorized is in the chain of errors about a rejected access token.
var errUnauthorized = errors.New("the access token is not accepted by Director")

// problem is an error in an answer. Its extensions hold Director's code.
type problem struct {
	Message    string     `json:"message"`
	Extensions extensions `json:"extensions"`
}

// extensions are read leniently: a value of another type counts as absent.
type extensions struct {
	Code int
	Name string
}

// UnmarshalJSON takes any JSON.
func (e *extensions) UnmarshalJSON(text []byte) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return nil //nolint:nilerr // not an object: no code
	}

	// A code of another form becomes 0, which is not a code.
	e.Code, _ = strconv.Atoi(strings.Trim(string(fields["error_code"]), `"`))
	_ = json.Unmarshal(fields["error"], &e.Name) // a name of another form is ignored

	return nil
}

const codeUnauthorized = 26

// meaning maps a code of Director to an error.
type meaning struct {
	name  string
	kind  failure.Kind
	cause error
	said  string
}

// meanings maps the codes of Director, from its package apperrors. Problems of our credentials are transient: an operator corrects them,
// and operations retry until then. Invalid requests stay invalid.
func meanings() map[int]meaning {
	const repair = "an operator must grant our credentials the scopes runtime:read and runtime:write"

	return map[int]meaning{
		10:               {"InternalError", failure.Transient, nil, "it reports an internal error"},
		11:               {"UnknownError", failure.Transient, nil, "it reports an internal error"},
		20:               {"NotFound", failure.NotFound, nil, "it does not exist there"},
		21:               {"NotUnique", failure.Conflict, nil, "it exists already"},
		22:               {"InvalidData", failure.Invalid, nil, "it rejects the request"},
		23:               {"InsufficientScopes", failure.Transient, nil, repair},
		24:               {"TenantRequired", failure.Invalid, nil, "it requires a tenant"},
		25:               {"TenantNotFound", failure.Invalid, ErrTenantUnknown, "it does not know the tenant"},
		codeUnauthorized: {"Unauthorized", failure.Transient, errUnauthorized, "it rejects our access token"},
		27:               {"InvalidOperation", failure.Invalid, nil, "it rejects the request"},
	}
}

// explain turns a problem into an error of package failure.
func (c *call) explain(problem *problem) error {
	known, ok := meanings()[problem.Extensions.Code]
	if !ok {
		known = meaning{failure.ReasonInternal, failure.Transient, nil, "it reports an internal error"}
	}

	reason := graphqlclient.Excerpt(problem.Extensions.Name)
	if reason == "" {
		reason = known.name
	}

	return failure.Wrap(known.kind, known.cause, "Director could not %s: %s: %s", c.action, known.said, graphqlclient.Excerpt(problem.Message)).
		WithReason(reason, failure.ComponentDirector)
}
