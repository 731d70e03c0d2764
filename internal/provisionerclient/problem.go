package provisionerclient

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// problem is an error in an answer. A Provisioner says in the extensions what it means.
type problem struct {
	Message    string     `json:"message"`
	Extensions extensions `json:"extensions"`
}

// extensions are read leniently: a value of another type counts as absent.
type extensions struct {
	code      int
	protocol  string
	reason    string
	component string
}

// UnmarshalJSON takes any JSON.
func (e *extensions) UnmarshalJSON(text []byte) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return nil //nolint:nilerr // No object, nothing to learn.
	}

	e.reason = textIn(fields["error_reason"])
	e.component = textIn(fields["error_component"])
	e.protocol = textIn(fields["code"])

	// A code of another form is 0, which no code is.
	e.code, _ = strconv.Atoi(strings.Trim(string(fields["error_code"]), `"`))

	return nil
}

func textIn(field json.RawMessage) string {
	var text string
	if json.Unmarshal(field, &text) != nil {
		return ""
	}

	return text
}

// refused says what the problem means for the broker.
func (c *call) refused(problem problem) error {
	message := excerpt(problem.Message)

	component := problem.Extensions.component
	if component == "" {
		component = failure.ComponentProvisioner
	}

	explained := func(known *failure.Error) error { return known.WithReason(problem.Extensions.reason, component) }

	switch {
	case problem.saysNoFeed():
		return explained(failure.Wrap(failure.Permanent, ErrNoFeed, "the provisioner could not %s", c.action))
	case problem.saysNotUnderstood():
		return explained(failure.Wrap(failure.Permanent, ErrNotUnderstood, "the provisioner refused to %s: %s", c.action, message))
	case problem.saysExists():
		return failure.New(failure.Permanent, "the provisioner refused to %s: %s", c.action, message).
			WithReason(failure.ReasonAlreadyExists, component)
	case problem.Extensions.reason == failure.ReasonNotFound:
		return explained(failure.New(failure.NotFound, "the provisioner could not %s: %s", c.action, message))
	case problem.saysInProgress():
		return explained(failure.New(failure.Waiting, "the provisioner is still busy with the runtime: %s", message))
	case problem.Extensions.code >= http.StatusBadRequest && problem.Extensions.code < http.StatusInternalServerError:
		return explained(failure.New(failure.Permanent, "the provisioner refused to %s: %s", c.action, message))
	default:
		return explained(failure.New(failure.Transient, "the provisioner could not %s: %s", c.action, message))
	}
}

// saysNoFeed recognises how GraphQL servers say that their schema has no such field.
func (p problem) saysNoFeed() bool {
	message := strings.ToLower(p.Message)
	saysUnknown := slices.ContainsFunc(
		[]string{"cannot query field", "undefined", "unknown", "not exist", "n't exist", "not defined", "no field"},
		func(words string) bool { return strings.Contains(message, words) })

	return saysUnknown && strings.Contains(message, "operationchanges")
}

// saysNotUnderstood recognises how GraphQL servers say that a request does not fit their schema. It never will.
func (p problem) saysNotUnderstood() bool {
	return p.Extensions.protocol == "GRAPHQL_VALIDATION_FAILED" || p.Extensions.protocol == "GRAPHQL_PARSE_FAILED"
}

// saysExists recognises that the cluster exists already. A former Provisioner gives Kubernetes' own reason, with a code that
// would ask for another try.
func (p problem) saysExists() bool {
	return p.Extensions.reason == failure.ReasonAlreadyExists || p.Extensions.reason == string(metav1.StatusReasonAlreadyExists)
}

// saysInProgress recognises the refusal of a former Provisioner, which runs one operation of a runtime after the other and
// says so only in its text.
func (p problem) saysInProgress() bool {
	message := strings.ReplaceAll(strings.ToLower(p.Message), "in-progress", "in progress")

	return strings.Contains(message, "in progress") && strings.Contains(message, "operation") &&
		!strings.Contains(message, "not in progress") && !strings.Contains(message, "no operation")
}
