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
	"github.com/environment-broker/environment-broker/internal/upstream/graphqlclient"
)

// graphqlError is an error in a response. The extensions classify the error; the message is for people.
type graphqlError struct {
	Message    string     `json:"message"`
	Path       path       `json:"path"`
	Extensions extensions `json:"extensions"`
}

// path is the path of the field that failed. It is empty if the whole request failed, or if the server sends no path.
type path []any

// UnmarshalJSON implements json.Unmarshaler. It accepts any JSON value; a value that is not a list results in an empty path.
func (p *path) UnmarshalJSON(text []byte) error {
	var steps []any
	if json.Unmarshal(text, &steps) == nil {
		*p = steps
	}

	return nil
}

// alias returns the alias of the failed field of Query or Mutation, or an empty string if the path is empty.
func (p path) alias() string {
	if len(p) == 0 {
		return ""
	}

	alias, _ := p[0].(string)

	return alias
}

// extensions classifies an error. It is decoded leniently: a value of an unexpected type is treated as absent.
type extensions struct {
	// code follows HTTP statuses: 4xx is a fault of the request, and 5xx is a fault of the Provisioner. 0 means
	// no code.
	code int
	// protocol is the code of the GraphQL server, such as GRAPHQL_VALIDATION_FAILED.
	protocol string
	// reason and component are codes of package failure or of Gardener.
	reason    string
	component string
}

// UnmarshalJSON implements json.Unmarshaler. It accepts any JSON value.
func (e *extensions) UnmarshalJSON(text []byte) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return nil //nolint:nilerr // not an object: no extensions
	}

	e.reason = textIn(fields["error_reason"])
	e.component = textIn(fields["error_component"])
	e.protocol = textIn(fields["code"])

	// A malformed code becomes 0, which means no code.
	e.code, _ = strconv.Atoi(strings.Trim(string(fields["error_code"]), `"`))

	return nil
}

// textIn decodes a JSON string. It returns an empty string for any other value.
func textIn(field json.RawMessage) string {
	var text string
	if json.Unmarshal(field, &text) != nil {
		return ""
	}

	return text
}

// refused classifies an error of the Provisioner. The order of the cases matters: the Kyma Provisioner uses the
// same code for many errors, so the more specific messages and reasons are checked before the code.
func (c *call) refused(problem *graphqlError) error {
	message := graphqlclient.Excerpt(problem.Message)

	component := cmp.Or(problem.Extensions.component, failure.ComponentProvisioner)

	explained := func(known *failure.Error) error { return known.WithReason(problem.Extensions.reason, component) }

	switch {
	case problem.saysNoFeed():
		return explained(failure.Wrap(failure.Permanent, ErrNoFeed, "the Provisioner could not %s", c.action))
	case problem.saysNotUnderstood():
		return explained(failure.Wrap(failure.Permanent, ErrNotUnderstood, "the Provisioner refused to %s: %s", c.action, message))
	case problem.saysExists():
		return failure.New(failure.Permanent, "the Provisioner refused to %s: %s", c.action, message).
			WithReason(failure.ReasonAlreadyExists, component)
	case problem.saysNotFound():
		return explained(failure.New(failure.NotFound, "the Provisioner could not %s: %s", c.action, message))
	case problem.saysInProgress():
		return explained(failure.New(failure.Waiting, "the Provisioner is still busy with the runtime: %s", message))
	case problem.Extensions.code >= http.StatusBadRequest && problem.Extensions.code < http.StatusInternalServerError:
		return explained(failure.New(failure.Permanent, "the Provisioner refused to %s: %s", c.action, message))
	default:
		return explained(failure.New(failure.Transient, "the Provisioner could not %s: %s", c.action, message))
	}
}

// saysNoFeed reports whether the error means that the server's schema lacks the feed. No code identifies this
// error, and the message differs between GraphQL servers and versions.
func (e graphqlError) saysNoFeed() bool {
	message := strings.ToLower(e.Message)
	saysUnknown := slices.ContainsFunc(
		[]string{"cannot query field", "undefined", "unknown", "not exist", "n't exist", "not defined", "no field"},
		func(words string) bool { return strings.Contains(message, words) })

	return saysUnknown && strings.Contains(message, "operationchanges")
}

// saysNotUnderstood reports whether the error means that the request does not match the server's schema.
func (e graphqlError) saysNotUnderstood() bool {
	return e.Extensions.protocol == "GRAPHQL_VALIDATION_FAILED" || e.Extensions.protocol == "GRAPHQL_PARSE_FAILED"
}

// saysExists reports whether the error means that a Shoot with the same name already exists. The Kyma Provisioner
// forwards the reason of Kubernetes, together with the code of an internal error.
func (e graphqlError) saysExists() bool {
	return e.Extensions.reason == failure.ReasonAlreadyExists || e.Extensions.reason == string(metav1.StatusReasonAlreadyExists)
}

// saysNotFound reports whether the error means that the object of the call does not exist. The object is either a
// row of the Provisioner or a Shoot. For a Shoot, the Provisioner forwards the reason of Kubernetes.
func (e graphqlError) saysNotFound() bool {
	return e.Extensions.reason == failure.ReasonNotFound || e.Extensions.reason == string(metav1.StatusReasonNotFound)
}

// saysInProgress reports whether the error means that another operation of the runtime has to end first. The Kyma
// Provisioner states this only in the message.
func (e graphqlError) saysInProgress() bool {
	message := strings.ReplaceAll(strings.ToLower(e.Message), "in-progress", "in progress")

	return strings.Contains(message, "in progress") && strings.Contains(message, "operation") &&
		!strings.Contains(message, "not in progress") && !strings.Contains(message, "no operation")
}
