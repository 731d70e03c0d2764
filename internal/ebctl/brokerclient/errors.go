package brokerclient

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"
)

// CodeConcurrency is the broker's word for: another operation of the instance runs.
const CodeConcurrency = "ConcurrencyError"

// AnswerError is an answer that is no success.
type AnswerError struct {
	// Status is the HTTP status, Code the broker's own word such as ConcurrencyError, or empty.
	Status int
	Code   string
	// Description is the broker's sentence for people, or empty.
	Description string
}

// Error returns what the broker said, or the status where it said nothing.
func (e *AnswerError) Error() string {
	status := fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
	description := strings.TrimSuffix(e.Description, ".")

	switch {
	case description != "" && e.Code != "":
		return fmt.Sprintf("%s (%s, %d)", description, e.Code, e.Status)
	case description != "":
		return fmt.Sprintf("%s (%s)", description, status)
	case e.Code != "":
		return fmt.Sprintf("the broker answers %s (%s)", e.Code, status)
	default:
		return "the broker answers " + status
	}
}

// Temporary reports whether the same call may succeed a little later.
func (e *AnswerError) Temporary() bool {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

// answerError reads an error body. OSB and the operator API share its form; of any other, such as a proxy's page, only the
// status is of use.
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

// UnreachableError is a call that got no answer. Whether the broker received it is not known.
type UnreachableError struct {
	Address string
	Cause   error
}

// Error returns which broker did not answer, and why.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the broker at %s gives no answer: %v", e.Address, e.Cause)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Cause }

// Temporary is true: the broker may be starting.
func (e *UnreachableError) Temporary() bool { return true }
