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
)

// graphqlError is an error in a response. The extensions classify the error; the message is for people.
type graphqlError struct {
	Message    string     `json:"message"`
	Path       path       `json:"path"`
	Extensions extensions `json:"extensions"`
}

// path is the path of the failed field. It is empty if the whole request failed, or if the server does not report a path.
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
	// code follows HTTP statuses: 4xx means a fault in the request, and 5xx a fault in the Provisioner. 0 means no code.
	code int
	// protocol is the code of the GraphQL server, such as GRAPHQL_VALIDATION_FAILED.
	protocol string
	// reason and component are codes of package failure or of Gardener.
	reason    string
	component string
	// fields are the paths of invalid request fields.
	fields []string
}

// UnmarshalJSON implements json.Unmarshaler. It accepts any JSON value.
func (e *extensions) UnmarshalJSON(text []byte) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return nil //nolint:nilerr // not an object: no extensions
	}

	e.reason = codeOf(textIn(fields["error_reason"]))
	e.component = codeOf(textIn(fields["error_component"]))
	e.protocol = textIn(fields["code"])

	_ = json.Unmarshal(fields["error_fields"], &e.fields) // malformed fields are absent

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

// maxCode is the maximum length of a reason or a component, in characters. A reason can consist of several codes of Gardener.
const maxCode = 200

// codeOf returns a reason or a component of the Provisioner as one printable line of a limited length, so that it can be stored.
func codeOf(text string) string { return failure.Printable(text, maxCode) }

// refused classifies an error of the Provisioner. The order of the cases matters: the Kyma Provisioner uses the
// same code for many errors, so the more specific messages and reasons are checked before the code.
func (c *call) refused(problem *graphqlError) error {
	component, reason := cmp.Or(problem.Extensions.component, failure.ComponentProvisioner), problem.Extensions.reason
	rejected, failed := "the Provisioner refused to "+c.action, "the Provisioner could not "+c.action

	reported := func(kind failure.Kind, what string) *failure.Error {
		return failure.Reported(kind, what, component, reason, strings.Join(append(problem.Extensions.fields, problem.Message), " "))
	}

	switch {
	case problem.saysNoFeed():
		return failure.Wrap(failure.Permanent, ErrNoFeed, "%s", failed).WithReason(reason, component)
	case problem.saysNotUnderstood():
		known := reported(failure.Permanent, rejected)
		known.Cause = ErrNotUnderstood

		return known
	case problem.saysExists():
		return reported(failure.Permanent, rejected).WithReason(failure.ReasonAlreadyExists, component)
	case problem.saysNotFound():
		return reported(failure.NotFound, failed)
	case problem.saysInProgress():
		return failure.New(failure.Waiting, "the Provisioner is still busy with the runtime").WithReason(reason, component).WithDetail(problem.Message)
	case problem.Extensions.code >= http.StatusBadRequest && problem.Extensions.code < http.StatusInternalServerError:
		return reported(failure.Permanent, rejected)
	default:
		return reported(failure.Transient, failed)
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

// saysNotFound reports whether the error means that the object of the call does not exist. The object is either a record in the
// database of the Provisioner or a Shoot. For a Shoot, the Provisioner forwards the reason of Kubernetes.
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
