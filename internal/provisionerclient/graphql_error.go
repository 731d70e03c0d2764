package provisionerclient

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/graphqlclient"
)

// graphqlError is an error in an answer. Its extensions classify the error; the message is for people.
type graphqlError struct {
	Message    string     `json:"message"`
	Extensions extensions `json:"extensions"`
}

// extensions are read leniently: a value of an unexpected type counts as absent.
type extensions struct {
	// code is like an HTTP status: 4xx if the request is at fault, 5xx if the Provisioner is. 0 means no code.
	code int
	// protocol is the code of the GraphQL server, such as GRAPHQL_VALIDATION_FAILED.
	protocol string
	// reason and component are those of package failure, or Gardener's.
	reason    string
	component string
}

// UnmarshalJSON accepts any JSON.
func (e *extensions) UnmarshalJSON(text []byte) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return nil //nolint:nilerr // not an object: no extensions
	}

	e.reason = textIn(fields["error_reason"])
	e.component = textIn(fields["error_component"])
	e.protocol = textIn(fields["code"])

	// A malformed code becomes 0, which is not a code.
	e.code, _ = strconv.Atoi(strings.Trim(string(fields["error_code"]), `"`))

	return nil
}

// textIn decodes a JSON string. Any other value is an empty text.
func textIn(field json.RawMessage) string {
	var text string
	if json.Unmarshal(field, &text) != nil {
		return ""
	}

	return text
}

// refused classifies an error of the Provisioner. The order of the cases matters: the Kyma Provisioner answers
// many errors with the same code, so the texts and reasons that name a case are checked before the code.
func (c *call) refused(problem *graphqlError) error {
	message := graphqlclient.Excerpt(problem.Message)

	component := cmp.Or(problem.Extensions.component, failure.ComponentProvisioner)

	explained := func(known *failure.Error) error { return known.WithReason(problem.Extensions.reason, component) }

	switch {
	case problem.saysNoFeed():
		return explained(failure.Wrap(failure.Permanent, ErrNoFeed, "the provisioner could not %s", c.action))
	case problem.saysNotUnderstood():
		return explained(failure.Wrap(failure.Permanent, ErrNotUnderstood, "the provisioner refused to %s: %s", c.action, message))
	case problem.saysExists():
		return failure.New(failure.Permanent, "the provisioner refused to %s: %s", c.action, message).
			WithReason(failure.ReasonAlreadyExists, component)
	case problem.saysNotFound():
		return explained(failure.New(failure.NotFound, "the provisioner could not %s: %s", c.action, message))
	case problem.saysInProgress():
		return explained(failure.New(failure.Waiting, "the provisioner is still busy with the runtime: %s", message))
	case problem.Extensions.code >= http.StatusBadRequest && problem.Extensions.code < http.StatusInternalServerError:
		return explained(failure.New(failure.Permanent, "the provisioner refused to %s: %s", c.action, message))
	default:
		return explained(failure.New(failure.Transient, "the provisioner could not %s: %s", c.action, message))
	}
}

// saysNoFeed recognizes the error of GraphQL servers whose schema lacks the feed. No code identifies the error,
// and the words differ between servers and their versions.
func (e graphqlError) saysNoFeed() bool {
	message := strings.ToLower(e.Message)
	saysUnknown := slices.ContainsFunc(
		[]string{"cannot query field", "undefined", "unknown", "not exist", "n't exist", "not defined", "no field"},
		func(words string) bool { return strings.Contains(message, words) })

	return saysUnknown && strings.Contains(message, "operationchanges")
}

// saysNotUnderstood recognizes the error of GraphQL servers for a request that does not fit their schema.
func (e graphqlError) saysNotUnderstood() bool {
	return e.Extensions.protocol == "GRAPHQL_VALIDATION_FAILED" || e.Extensions.protocol == "GRAPHQL_PARSE_FAILED"
}

// saysExists recognizes that a Shoot of the same name exists already. The Kyma Provisioner forwards the reason
// of Kubernetes, together with the code of an internal error.
func (e graphqlError) saysExists() bool {
	return e.Extensions.reason == failure.ReasonAlreadyExists || e.Extensions.reason == string(metav1.StatusReasonAlreadyExists)
}

// saysNotFound recognizes that the object of the call does not exist: a row of the Provisioner, or the Shoot, for
// which the Provisioner forwards the reason of Kubernetes.
func (e graphqlError) saysNotFound() bool {
	return e.Extensions.reason == failure.ReasonNotFound || e.Extensions.reason == string(metav1.StatusReasonNotFound)
}

// saysInProgress recognizes that another operation of the runtime has to end first. The Kyma Provisioner
// reports this only in the message.
func (e graphqlError) saysInProgress() bool {
	message := strings.ReplaceAll(strings.ToLower(e.Message), "in-progress", "in progress")

	return strings.Contains(message, "in progress") && strings.Contains(message, "operation") &&
		!strings.Contains(message, "not in progress") && !strings.Contains(message, "no operation")
}
