package httpserver

import (
	"context"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// longestText is how much platforms show of a description, in characters.
	longestText = 255
	// unavailableWait is when to come back after the database, or something else, was away.
	unavailableWait = 5 * time.Second

	internalText    = "The broker failed. Its log tells why."
	unavailableText = "The broker's database does not answer. Try again later."
	tooLargeText    = "The body of the request is too large."
)

// Refusal is an answer that is no success, as an error.
type Refusal struct {
	Status int
	// Code is a single CamelCase word for machines, or empty where the protocol names none.
	Code string
	// Description is for people. More than 255 characters are cut.
	Description string
	// RetryAfter, if positive, tells when the same request may succeed.
	RetryAfter time.Duration
	// InstanceUsable and UpdateRepeatable are for refused updates: whether the instance can still be used, and whether the same update
	// may succeed later. Nil is not told.
	InstanceUsable, UpdateRepeatable *bool
	// Cause is for the log.
	Cause error
}

// Refuse returns a refusal with a description and without a code.
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

// answer returns the body that the Open Service Broker API prescribes; the operator API has the same.
func (r *Refusal) answer() Answer {
	answer := Answer{Status: r.Status, Body: struct {
		Code             string `json:"error,omitempty"`
		Description      string `json:"description"`
		InstanceUsable   *bool  `json:"instance_usable,omitempty"`
		UpdateRepeatable *bool  `json:"update_repeatable,omitempty"`
	}{r.Code, Shorten(r.Description), r.InstanceUsable, r.UpdateRepeatable}}

	if r.RetryAfter > 0 {
		answer = answer.RetryAfter(r.RetryAfter)
	}

	return answer
}

// RefusalOf turns any error into a refusal: what a failure means over HTTP, 413 for a body beyond the limit, 503 for a database
// that does not answer, and 500 for the rest, whose text stays in the log. A failure is worth more than its cause.
func RefusalOf(err error) *Refusal {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal
	}

	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Refusal{Status: http.StatusRequestEntityTooLarge, Code: "RequestEntityTooLarge", Description: tooLargeText, Cause: err}
	}

	if known, ok := errors.AsType[*failure.Error](err); ok && known.Kind != failure.Internal {
		return refusalOf(known)
	}

	if storage.IsUnavailable(err) || errors.Is(err, context.DeadlineExceeded) {
		return &Refusal{
			Status: http.StatusServiceUnavailable, Description: unavailableText, RetryAfter: unavailableWait, Cause: err,
		}
	}

	return &Refusal{Status: http.StatusInternalServerError, Description: internalText, Cause: err}
}

func refusalOf(known *failure.Error) *Refusal {
	mapping := failure.MappingOf(known.Kind)

	refusal := &Refusal{Status: mapping.HTTP, Description: known.Text, Cause: known.Cause}
	if mapping.Retry {
		refusal.RetryAfter = unavailableWait
	}

	return refusal
}

// Shorten cuts a text to what platforms show.
func Shorten(text string) string {
	if utf8.RuneCountInString(text) <= longestText {
		return text
	}

	return string([]rune(text)[:longestText-1]) + "…"
}
