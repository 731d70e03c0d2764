package brokerclient

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"
)

// CodeConcurrency is the OSB error code with which the broker rejects a request while another operation of the instance is in
// progress.
const CodeConcurrency = "ConcurrencyError"

// AnswerError is an error response, from the broker or from a proxy in front of the broker.
type AnswerError struct {
	// Status is the HTTP status. Code is the broker's error code, such as ConcurrencyError, or empty.
	Status int
	Code   string
	// Description is the broker's message, or empty.
	Description string
	// Service is the called service: "broker" or "Provisioner".
	Service string
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
		return fmt.Sprintf("the %s responded with %s (%s)", e.Service, e.Code, status)
	default:
		return fmt.Sprintf("the %s responded with %s", e.Service, status)
	}
}

// Temporary reports whether the same request may succeed later, based on the status (429, 502, 503 or 504). Package follow
// retries such errors while it polls.
func (e *AnswerError) Temporary() bool {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

// answerError decodes an error response. The Open Service Broker API and the operator API have the same error format. answerError
// ignores bodies in other formats, such as the HTML page of a proxy.
func (c *Client) answerError(response *http.Response, body []byte) *AnswerError {
	failed := &AnswerError{Status: response.StatusCode, Service: c.service()}

	var known apiresponses.ErrorResponse
	if err := json.Unmarshal(body, &known); err == nil {
		failed.Code, failed.Description = known.Error, known.Description
	}

	if location := response.Header.Get("Location"); location != "" && failed.Description == "" {
		failed.Description = "the " + c.service() + " has moved to " + location
	}

	return failed
}

// UnreachableError reports a request without a complete response. The broker may have received and executed the request.
type UnreachableError struct {
	// Service is the called service: "broker" or "Provisioner".
	Service string
	Address string
	Cause   error
}

// Error returns the address of the broker and the cause.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the %s at %s does not respond: %v", e.Service, e.Address, e.Cause)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Cause }

// Temporary returns true, because the broker may be restarting.
func (e *UnreachableError) Temporary() bool { return true }
