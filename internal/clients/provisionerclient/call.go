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
	"github.com/environment-broker/environment-broker/internal/labels/tenancy"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/internal/upstream/graphqlclient"
)

// maxResponseBytes is the maximum size of a response body.
const maxResponseBytes = 8 << 20

// call sends one request and checks the response. It implements graphql.Client for the functions that
// genqlient generates.
type call struct {
	client  *http.Client
	url     string
	timeout time.Duration
	// action completes error messages such as "the Provisioner could not …".
	action string
	caller Caller
	// confidential forbids quoting the response in errors.
	confidential bool
}

var _ graphql.Client = (*call)(nil)

// MakeRequest sends the request and decodes the data of the response. Its errors carry a failure.Kind: see refused for errors in
// the response; a missing or malformed response is failure.Transient.
func (c *call) MakeRequest(ctx context.Context, request *graphql.Request, response *graphql.Response) error {
	answer, err := c.send(ctx, request)
	if err != nil {
		return err
	}

	problem, err := graphqlclient.Decode[graphqlError](answer, response.Data)
	if problem != nil {
		return c.refused(problem)
	}

	return c.malformed(err)
}

// send sends the request and returns the response without decoding it. Its errors carry a failure.Kind.
func (c *call) send(ctx context.Context, request *graphql.Request) (graphqlclient.Answer, error) {
	body, err := encode(request)
	if err != nil {
		return graphqlclient.Answer{}, failure.Wrap(failure.Internal, err, "encoding a request to the Provisioner failed")
	}

	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()

	answer, err := graphqlclient.Send(limited, c.client, graphqlclient.Request{
		URL: c.url, Body: body, MaxBytes: maxResponseBytes, Confidential: c.confidential,
		Header: map[string]string{
			"tenant":                         tenancy.Label(c.caller.Tenant),
			"sub-account":                    tenancy.Label(c.caller.SubAccount),
			"Idempotency-Key":                c.caller.IdempotencyKey,
			tenancy.HeaderOriginalTenant:     tenancy.EncodeOriginal(c.caller.Tenant),
			tenancy.HeaderOriginalSubAccount: tenancy.EncodeOriginal(c.caller.SubAccount),
		},
	})
	if err != nil {
		return graphqlclient.Answer{}, c.unanswered(ctx, err)
	}

	return answer, nil
}

// malformed classifies an error of graphqlclient about a response that is not valid GraphQL. It returns nil for nil.
func (c *call) malformed(err error) error {
	if unexpected, ok := errors.AsType[*graphqlclient.Unexpected](err); ok {
		return c.transient(unexpected.LogCause(), unexpected.Text)
	}

	if err != nil {
		return c.missing("data")
	}

	return nil
}

// unanswered classifies the error of a request without a response. The Provisioner may have received the
// request, so the caller must be able to repeat it.
func (c *call) unanswered(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return failure.Wrap(failure.Transient, ctx.Err(), "the call to the Provisioner was canceled").
			WithReason("", failure.ComponentProvisioner)
	case errors.Is(err, context.DeadlineExceeded):
		return failure.Wrap(failure.Transient, context.DeadlineExceeded, "the Provisioner did not respond within %s", c.timeout).
			WithReason(failure.ReasonTimeout, failure.ComponentProvisioner)
	}

	// If the concurrency limit or the circuit breaker rejected the request, the error is already classified.
	if ferr, ok := errors.AsType[*failure.Error](err); ok {
		return ferr
	}

	// The cause may contain an address, so it is only logged.
	return failure.Wrap(failure.Transient, errors.New(upstream.Excerpt(err.Error())), "the Provisioner cannot be reached").
		WithReason("", failure.ComponentProvisioner)
}

// transient returns the error for an unexpected response.
func (c *call) transient(cause error, text string) error {
	return failure.Wrap(failure.Transient, cause, "the Provisioner could not %s: it %s", c.action, text).
		WithReason(failure.ReasonHTTPStatus, failure.ComponentProvisioner)
}

// missing returns the error for a response without the requested data.
func (c *call) missing(data string) error {
	return c.transient(nil, "did not return "+data)
}

// encode encodes the request without null fields. Null and absent fields have the same meaning, but the Kyma
// Provisioner rejects unknown fields even if they are null.
func encode(request *graphql.Request) ([]byte, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encoding a request: %w", err)
	}

	if !bytes.Contains(text, []byte("null")) {
		return text, nil // most requests contain only an ID
	}

	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()

	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return nil, fmt.Errorf("encoding a request: %w", err)
	}

	dropNulls(fields)

	text, err = json.Marshal(fields)

	return text, failure.While(err, "encoding a request")
}

// dropNulls removes null fields from objects at any depth. It does not remove nulls from lists.
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
