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

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 8 << 20

// call sends one request and judges its answer. It is what genqlient's functions send their requests with.
type call struct {
	client  *http.Client
	url     string
	timeout time.Duration
	// action completes "the provisioner could not …".
	action string
	caller Caller
	// confidential answers are never quoted.
	confidential bool
}

var _ graphql.Client = (*call)(nil)

// envelope is what every GraphQL answer looks like.
type envelope struct {
	Data   json.RawMessage `json:"data"`
	Errors []problem       `json:"errors"`
}

// MakeRequest sends the request and decodes the answer's data. Its errors are those that the package promises.
func (c *call) MakeRequest(ctx context.Context, request *graphql.Request, response *graphql.Response) error {
	body, err := encode(request)
	if err != nil {
		return failure.Wrap(failure.Internal, err, "the request to the provisioner cannot be written")
	}

	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()

	status, answer, err := c.send(limited, body)
	if err != nil {
		return c.unanswered(ctx, err)
	}

	return c.judge(status, answer, response.Data)
}

func (c *call) send(ctx context.Context, body []byte) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("make request: %w", err)
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
		return 0, nil, fmt.Errorf("send request: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // The body was read.

	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return 0, nil, fmt.Errorf("read answer: %w", err)
	}

	return response.StatusCode, answer, nil
}

// judge decodes the answer into data, or returns what is wrong with it. The errors in an answer count more than its status.
func (c *call) judge(status int, answer []byte, data any) error {
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
		return c.transient(err, "answered with something that is no GraphQL%s", c.quote(answer))
	case len(envelope.Data) == 0:
		return c.lacking("data")
	}

	if err := json.Unmarshal(envelope.Data, data); err != nil {
		return c.transient(err, "answered with other data than asked for%s", c.quote(answer))
	}

	return nil
}

// unanswered explains why no answer came. An address in the cause may hold credentials, so the text has only what is inside
// of it.
func (c *call) unanswered(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return failure.Wrap(failure.Transient, ctx.Err(), "the wait for the provisioner was ended").
			WithReason("", failure.ComponentProvisioner)
	case errors.Is(err, context.DeadlineExceeded):
		return failure.Wrap(failure.Transient, context.DeadlineExceeded, "the provisioner did not answer within %s", c.timeout).
			WithReason(failure.ReasonTimeout, failure.ComponentProvisioner)
	}

	// A request that was not let through explains itself.
	if known, ok := errors.AsType[*failure.Error](err); ok {
		return known
	}

	inner := err

	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		inner = wrapped.Err
	}

	// Addresses are for the log, not for users.
	return failure.Wrap(failure.Transient, errors.New(excerpt(inner.Error())), "the provisioner cannot be reached").
		WithReason("", failure.ComponentProvisioner)
}

// transient is for answers that cannot be meant.
func (c *call) transient(cause error, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)

	return failure.Wrap(failure.Transient, cause, "the provisioner could not %s: it %s", c.action, text).
		WithReason(failure.ReasonHTTPStatus, failure.ComponentProvisioner)
}

// lacking is for answers without what they are asked for.
func (c *call) lacking(what string) error {
	return c.transient(nil, "answered without %s", what)
}

// quote returns the begin of an answer, to be appended to a text.
func (c *call) quote(answer []byte) string {
	if c.confidential || len(answer) == 0 {
		return ""
	}

	return ": " + excerpt(string(answer))
}
