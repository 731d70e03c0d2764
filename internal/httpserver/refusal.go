package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// maxText is the maximum length of a description in characters. Platforms truncate longer descriptions.
	maxText = 255
	// unavailableWait is the Retry-After value in responses to requests that failed for a temporary reason.
	unavailableWait = 5 * time.Second

	internalText    = "An internal error occurred. The service's log has the details."
	unavailableText = "The database does not respond. Try again later."
)

// Refusal is an error response. It implements error, so endpoints and the packages that they call can return it.
type Refusal struct {
	// Status is the HTTP status, 400 or more.
	Status int
	// Code is the error code for programs, in CamelCase. Most errors have no code.
	Code string
	// Description explains the error to people. The response contains at most 255 characters of it; see Shorten.
	Description string
	// RetryAfter is the time after which the same request may succeed. If it is not positive, the response has no Retry-After
	// header.
	RetryAfter time.Duration
	// InstanceUsable and UpdateRepeatable are OSB fields of rejected updates: whether the instance still works, and whether the
	// same update may succeed later. Nil omits the field.
	InstanceUsable, UpdateRepeatable *bool
	// Cause is logged and never sent. Nil means no cause.
	Cause error
}

// Refuse returns a refusal without a code.
func Refuse(status int, description string) *Refusal {
	return &Refusal{Status: status, Description: description}
}

// Error returns the description and the cause.
func (r *Refusal) Error() string {
	if r.Cause == nil {
		return r.Description
	}

	return r.Description + ": " + r.Cause.Error()
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Cause }

// response returns the response with the error body of the Open Service Broker API, which the operator API also uses.
func (r *Refusal) response() Response {
	response := Response{Status: r.Status, Body: struct {
		Code             string `json:"error,omitempty"`
		Description      string `json:"description"`
		InstanceUsable   *bool  `json:"instance_usable,omitempty"`
		UpdateRepeatable *bool  `json:"update_repeatable,omitempty"`
	}{r.Code, Shorten(r.Description), r.InstanceUsable, r.UpdateRepeatable}}

	if r.RetryAfter > 0 {
		response = response.RetryAfter(r.RetryAfter)
	}

	return response
}

// RefusalOf converts any error to a refusal. It returns a *Refusal unchanged. For all other errors, the first matching rule
// determines the status:
//
//   - a request body above the limit: 413
//   - a failure.Error of any kind except failure.Internal: the status of the kind
//   - an unavailable database, or a deadline that has passed: 503
//   - any other error: 500
//
// The description names the limit in the first case, is the text of the failure.Error in the second case, and is a fixed text in the other
// cases. The cause is only logged.
func RefusalOf(err error) *Refusal {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal
	}

	if exceeded, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Refusal{
			Status: http.StatusRequestEntityTooLarge, Code: "RequestEntityTooLarge", Cause: err,
			Description: fmt.Sprintf("The request body is larger than %d KiB. Shorten the request.", exceeded.Limit>>10),
		}
	}

	if ferr, ok := errors.AsType[*failure.Error](err); ok && ferr.Kind != failure.Internal {
		return refusalOf(ferr)
	}

	if storage.IsUnavailable(err) || errors.Is(err, context.DeadlineExceeded) {
		return &Refusal{
			Status: http.StatusServiceUnavailable, Description: unavailableText, RetryAfter: unavailableWait, Cause: err,
		}
	}

	return &Refusal{Status: http.StatusInternalServerError, Description: internalText, Cause: err}
}

// refusalOf converts a failure.Error. Its Text is written for users and becomes the description of the response.
func refusalOf(ferr *failure.Error) *Refusal {
	mapping := failure.MappingOf(ferr.Kind)

	refusal := &Refusal{Status: mapping.HTTP, Description: ferr.Text, Cause: ferr.Cause}
	if mapping.Retry {
		refusal.RetryAfter = unavailableWait
	}

	return refusal
}

// Shorten returns the text unchanged if it has at most 255 characters. Otherwise, it returns the start and the end of the text
// with an ellipsis between them.
func Shorten(text string) string { return failure.Shorten(text, maxText) }
