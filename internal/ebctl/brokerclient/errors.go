package brokerclient

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"
)

// CodeConcurrency is the error code of requests that another operation of the instance blocks.
const CodeConcurrency = "ConcurrencyError"

// AnswerError is an error response of the broker, or of a proxy before it.
type AnswerError struct {
	// Status is the HTTP status. Code is the broker's error code such as ConcurrencyError, or empty.
	Status int
	Code   string
	// Description is the broker's message, or empty.
	Description string
}

// Error returns the broker's message, or the status if there is none.
func (e *AnswerError) Error() string {
	status := fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
	description := strings.TrimSuffix(e.Description, ".")

	switch {
	case description != "" && e.Code != "":
		return fmt.Sprintf("%s (%s, %d)", description, e.Code, e.Status)
	case description != "":
		return fmt.Sprintf("%s (%s)", description, status)
	case e.Code != "":
		return fmt.Sprintf("the broker answered %s (%s)", e.Code, status)
	default:
		return "the broker answered " + status
	}
}

// Temporary reports whether the same call may succeed later.
func (e *AnswerError) Temporary() bool {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

// answerError decodes an error body, which OSB and the operator API share. Of any other body, such as a proxy's page, it keeps only the
// status.
func answerError(response *http.Response, body []byte) *AnswerError {
	failed := &AnswerError{Status: response.StatusCode}

	var known apiresponses.ErrorResponse
	if err := json.Unmarshal(body, &known); err == nil {
		failed.Code, failed.Description = known.Error, known.Description
	}

	if location := response.Header.Get("Location"); location != "" && failed.Description == "" {
		failed.Description = "the broker has moved to " + location
	}

	return failed
}

// UnreachableError is a call without an answer. The broker may have received it.
type UnreachableError struct {
	Address string
	Cause   error
}

// Error returns the address of the broker and the cause.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the broker at %s does not answer: %v", e.Address, e.Cause)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Cause }

// Temporary returns true: the broker may be starting.
func (e *UnreachableError) Temporary() bool { return true }
