package provisionerclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Khan/genqlient/graphql"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/graphqlclient"
	"github.com/environment-broker/environment-broker/internal/tenancy"
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

// MakeRequest sends the request and decodes the answer's data. Its errors are of package failure: an error in
// the answer is classified by refused, a missing or malformed answer is failure.Transient.
func (c *call) MakeRequest(ctx context.Context, request *graphql.Request, response *graphql.Response) error {
	body, err := encode(request)
	if err != nil {
		return failure.Wrap(failure.Internal, err, "encoding a request to the Provisioner")
	}

	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()

	answer, err := graphqlclient.Send(limited, c.client, graphqlclient.Request{
		URL: c.url, Body: body, MaxBytes: maxAnswer, Confidential: c.confidential,
		Header: map[string]string{
			"tenant":                         tenancy.Label(c.caller.Tenant),
			"sub-account":                    tenancy.Label(c.caller.SubAccount),
			"Idempotency-Key":                c.caller.IdempotencyKey,
			tenancy.HeaderOriginalTenant:     tenancy.EncodeOriginal(c.caller.Tenant),
			tenancy.HeaderOriginalSubAccount: tenancy.EncodeOriginal(c.caller.SubAccount),
		},
	})
	if err != nil {
		return c.unanswered(ctx, err)
	}

	problem, err := graphqlclient.Decode[graphqlError](answer, response.Data)
	if problem != nil {
		return c.refused(problem)
	}

	if unexpected, ok := errors.AsType[*graphqlclient.Unexpected](err); ok {
		return c.transient(unexpected.Cause, unexpected.Error())
	}

	if err != nil {
		return c.lacking("data")
	}

	return nil
}

// unanswered classifies the error of a request without an answer. The Provisioner may have received the
// request, so the caller must be able to repeat it.
func (c *call) unanswered(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return failure.Wrap(failure.Transient, ctx.Err(), "the call of the provisioner was canceled").
			WithReason("", failure.ComponentProvisioner)
	case errors.Is(err, context.DeadlineExceeded):
		return failure.Wrap(failure.Transient, context.DeadlineExceeded, "the provisioner did not answer within %s", c.timeout).
			WithReason(failure.ReasonTimeout, failure.ComponentProvisioner)
	}

	// The limit and the circuit breaker reject requests with errors of their own.
	if known, ok := errors.AsType[*failure.Error](err); ok {
		return known
	}

	// The cause, which may hold an address, goes to the log only.
	return failure.Wrap(failure.Transient, errors.New(graphqlclient.Excerpt(err.Error())), "the provisioner cannot be reached").
		WithReason("", failure.ComponentProvisioner)
}

// transient returns the error for an unexpected answer.
func (c *call) transient(cause error, text string) error {
	return failure.Wrap(failure.Transient, cause, "the provisioner could not %s: it %s", c.action, text).
		WithReason(failure.ReasonHTTPStatus, failure.ComponentProvisioner)
}

// lacking returns the error for an answer without the requested data.
func (c *call) lacking(data string) error {
	return c.transient(nil, "answered without "+data)
}

// encode encodes the request without null fields. They mean the same as absent ones, but the Kyma Provisioner
// rejects a field that it does not know even if it is null.
func encode(request *graphql.Request) ([]byte, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encoding a request: %w", err)
	}

	if !bytes.Contains(text, []byte("null")) {
		return text, nil // most requests have only an ID
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

// dropNulls removes null fields of objects at any depth, and keeps nulls in lists.
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
