package provisionerclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/Khan/genqlient/graphql"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// maxAnswer is the longest answer that is read, in bytes.
const maxAnswer = 8 << 20

// call sends one request and checks its answer. It is the client of genqlient's functions.
type call struct {
	client  *http.Client
	url     string
	timeout time.Duration
	// action completes the error text "the provisioner could not …".
	action string
	caller Caller
	// confidential answers are never quoted.
	confidential bool
}

var _ graphql.Client = (*call)(nil)

// envelope is the form of every GraphQL answer.
type envelope struct {
	Data   json.RawMessage `json:"data"`
	Errors []graphqlError  `json:"errors"`
}

// MakeRequest sends the request and decodes the answer's data. Its errors are of package failure.
func (c *call) MakeRequest(ctx context.Context, request *graphql.Request, response *graphql.Response) error {
	body, err := encode(request)
	if err != nil {
		return failure.Wrap(failure.Internal, err, "encoding a request to the Provisioner")
	}

	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()

	status, answer, err := c.send(limited, body)
	if err != nil {
		return c.unanswered(ctx, err)
	}

	return c.decode(status, answer, response.Data)
}

func (c *call) send(ctx context.Context, body []byte) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("making a request: %w", err)
	}

	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")

	for name, value := range map[string]string{
		"tenant": c.caller.Tenant, "sub-account": c.caller.SubAccount, "Idempotency-Key": c.caller.IdempotencyKey,
	} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}

	response, err := c.client.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("sending a request: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // The body was read.

	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return 0, nil, fmt.Errorf("reading the answer: %w", err)
	}

	return response.StatusCode, answer, nil
}

// decode reads the answer into data, or classifies the error in it. Errors of GraphQL take precedence over the HTTP status.
func (c *call) decode(status int, answer []byte, data any) error {
	if len(answer) > maxAnswer {
		return c.transient(nil, "answered with more than %d bytes", maxAnswer)
	}

	var envelope envelope

	err := json.Unmarshal(answer, &envelope)

	switch {
	case err == nil && len(envelope.Errors) > 0:
		return c.refused(envelope.Errors[0])
	case status != http.StatusOK:
		return c.transient(err, "answered with HTTP status %d %s%s", status, http.StatusText(status), c.quote(answer))
	case err != nil:
		return c.transient(err, "answered with something other than GraphQL%s", c.quote(answer))
	case len(envelope.Data) == 0:
		return c.lacking("data")
	}

	if err := json.Unmarshal(envelope.Data, data); err != nil {
		return c.transient(err, "answered with unexpected data%s", c.quote(answer))
	}

	return nil
}

// unanswered classifies the error of a request without an answer. The URL in an error may hold credentials, so only the inner error is
// kept.
func (c *call) unanswered(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return failure.Wrap(failure.Transient, ctx.Err(), "the wait for the provisioner was canceled").
			WithReason("", failure.ComponentProvisioner)
	case errors.Is(err, context.DeadlineExceeded):
		return failure.Wrap(failure.Transient, context.DeadlineExceeded, "the provisioner did not answer within %s", c.timeout).
			WithReason(failure.ReasonTimeout, failure.ComponentProvisioner)
	}

	// The limit and the circuit breaker reject requests with errors of their own.
	if known, ok := errors.AsType[*failure.Error](err); ok {
		return known
	}

	inner := err

	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		inner = wrapped.Err
	}

	// The cause, which may hold an address, goes to the log only.
	return failure.Wrap(failure.Transient, errors.New(excerpt(inner.Error())), "the provisioner cannot be reached").
		WithReason("", failure.ComponentProvisioner)
}

// transient returns the error for an unexpected answer.
func (c *call) transient(cause error, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)

	return failure.Wrap(failure.Transient, cause, "the provisioner could not %s: it %s", c.action, text).
		WithReason(failure.ReasonHTTPStatus, failure.ComponentProvisioner)
}

// lacking returns the error for an answer without the requested data.
func (c *call) lacking(data string) error {
	return c.transient(nil, "answered without %s", data)
}

// quote returns the start of an answer, to be appended to an error text.
func (c *call) quote(answer []byte) string {
	if c.confidential || len(answer) == 0 {
		return ""
	}

	return ": " + excerpt(string(answer))
}

// encode encodes the request without null fields. They mean the same as absent ones, but the Kyma Provisioner rejects a field that it
// does not know even if it is null.
func encode(request *graphql.Request) ([]byte, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encoding a request: %w", err)
	}

	if !bytes.Contains(text, []byte("null")) {
		return text, nil // most requests have nothing but an id
	}

	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()

	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return nil, fmt.Errorf("encoding a request: %w", err)
	}

	dropNulls(fields)

	text, err = json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encoding a request: %w", err)
	}

	return text, nil
}

func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			if field == nil {
				delete(value, name)
			}

			dropNulls(field)
		}
	case []any:
		for _, element := range value {
			dropNulls(element)
		}
	}
}
