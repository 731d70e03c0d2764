package director

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// ErrTenantUnknown is in the chain of errors that say that Director does not know the tenant.
var ErrTenantUnknown = errors.New("the tenant is not known to Director")

// errUnauthorized is in the chain of errors that say that Director does not accept the access token.
var errUnauthorized = errors.New("the access token is not accepted by Director")

// problem is an error in an answer. Director says in the extensions what it means.
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
		return nil //nolint:nilerr // No object, nothing to learn.
	}

	// A code of another form is 0, which no code is.
	e.Code, _ = strconv.Atoi(strings.Trim(string(fields["error_code"]), `"`))
	_ = json.Unmarshal(fields["error"], &e.Name) // a name of another form is none

	return nil
}

const codeUnauthorized = 26

// meaning is what a code of Director's means to us.
type meaning struct {
	name  string
	kind  failure.Kind
	cause error
	said  string
}

// meanings tells what the codes mean. Credentials that Director does not accept are repaired by somebody, and what needs them is tried
// again until then; what is wrong with a request stays wrong.
func meanings() map[int]meaning {
	const repair = "an operator has to give our credentials the scopes runtime:read and runtime:write"

	return map[int]meaning{
		10:               {"InternalError", failure.Transient, nil, "it has an error of its own"},
		11:               {"UnknownError", failure.Transient, nil, "it has an error of its own"},
		20:               {"NotFound", failure.NotFound, nil, "it does not know it"},
		21:               {"NotUnique", failure.Conflict, nil, "there is one already"},
		22:               {"InvalidData", failure.Invalid, nil, "it refuses it"},
		23:               {"InsufficientScopes", failure.Transient, nil, repair},
		24:               {"TenantRequired", failure.Invalid, nil, "it needs a tenant"},
		25:               {"TenantNotFound", failure.Invalid, ErrTenantUnknown, "it does not know the tenant"},
		codeUnauthorized: {"Unauthorized", failure.Transient, errUnauthorized, "it does not accept our access token"},
		27:               {"InvalidOperation", failure.Invalid, nil, "it refuses it"},
	}
}

// explain says what the problem means for the Provisioner.
func (c *call) explain(problem problem) error {
	known, ok := meanings()[problem.Extensions.Code]
	if !ok {
		known = meaning{failure.ReasonInternal, failure.Transient, nil, "it has an error of its own"}
	}

	reason := excerpt(problem.Extensions.Name)
	if reason == "" {
		reason = known.name
	}

	return failure.Wrap(known.kind, known.cause, "Director could not %s: %s: %s", c.action, known.said, excerpt(problem.Message)).
		WithReason(reason, failure.ComponentDirector)
}
