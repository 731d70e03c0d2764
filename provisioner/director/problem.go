package director

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// ErrTenantUnknown is in the chain of errors about a tenant that Director does not know, for example because it was deleted.
var ErrTenantUnknown = errors.New("the tenant is unknown to Director")

// errUnauthorized is in the chain of errors about a rejected access token. MakeRequest then fetches a new token.
var errUnauthorized = errors.New("the access token was rejected by Director")

// problem is an entry in the errors field of a response. Its extensions contain Director's error code.
type problem struct {
	Message    string     `json:"message"`
	Extensions extensions `json:"extensions"`
}

// extensions are the machine-readable part of a problem. A field is zero if Director, or a proxy that responded instead, did not
// send it.
type extensions struct {
	Code int
	Name string
}

// UnmarshalJSON accepts any JSON value. It ignores fields of unexpected types, so that the problem's message is never lost.
func (e *extensions) UnmarshalJSON(text []byte) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return nil //nolint:nilerr // Extensions that are not an object have no code.
	}

	// A malformed code becomes 0, which Director does not use.
	e.Code, _ = strconv.Atoi(strings.Trim(string(fields["error_code"]), `"`))
	_ = json.Unmarshal(fields["error"], &e.Name) // A malformed name stays empty.

	return nil
}

// codeUnauthorized is Director's code for a rejected access token. Gateways respond with HTTP status 401 instead.
const codeUnauthorized = 26

// meaning describes one of Director's codes: its name, the kind and cause of the resulting error, and a clause for the text.
type meaning struct {
	name  string
	kind  failure.Kind
	cause error
	said  string
}

// meanings maps the codes from Director's package apperrors to errors. Problems with the credentials are transient: operations
// retry until an operator corrects the credentials. A rejected request is Invalid, because Director would reject a retry too.
func meanings() map[int]meaning {
	const repair = "an operator must grant the credentials the scopes runtime:read and runtime:write"

	return map[int]meaning{
		10:               {"InternalError", failure.Transient, nil, "it reports an internal error"},
		11:               {"UnknownError", failure.Transient, nil, "it reports an internal error"},
		20:               {"NotFound", failure.NotFound, nil, "it does not exist"},
		21:               {"NotUnique", failure.Conflict, nil, "it already exists"},
		22:               {"InvalidData", failure.Invalid, nil, "it rejects the request"},
		23:               {"InsufficientScopes", failure.Transient, nil, repair},
		24:               {"TenantRequired", failure.Invalid, nil, "it requires a tenant"},
		25:               {"TenantNotFound", failure.Invalid, ErrTenantUnknown, "the tenant is unknown"},
		codeUnauthorized: {"Unauthorized", failure.Transient, errUnauthorized, "it rejects our access token"},
		27:               {"InvalidOperation", failure.Invalid, nil, "it rejects the request"},
	}
}

// explain turns a problem into a failure.Error. An unknown code is transient.
func (c *call) explain(problem *problem) error {
	known, ok := meanings()[problem.Extensions.Code]
	if !ok {
		known = meaning{failure.ReasonInternal, failure.Transient, nil, "it reports an internal error"}
	}

	reason := upstream.Excerpt(problem.Extensions.Name)
	if reason == "" {
		reason = known.name
	}

	return failure.Wrap(known.kind, known.cause, "Director could not %s: %s", c.action, known.said).
		WithReason(reason, failure.ComponentDirector).WithDetail(problem.Message)
}
