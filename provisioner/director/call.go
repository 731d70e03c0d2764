package director

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/Khan/genqlient/graphql"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/internal/upstream/graphqlclient"
)

// maxAnswer is the maximum size of a response in bytes. A larger response is an error.
const maxAnswer = 4 << 20

// call sends the request of one Client method. It implements genqlient's graphql.Client, so that the generated functions use the
// Provisioner's access tokens, the tenant header and errors from package failure.
type call struct {
	client *Client
	tenant string
	// action completes the error message "Director could not …".
	action string
	// confidential prevents errors from quoting the response.
	confidential bool
}

var _ graphql.Client = (*call)(nil)

// call returns a call for the tenant. action is a phrase for error messages, such as "find runtimes".
func (c *Client) call(action, tenant string) *call {
	return &call{client: c, action: action, tenant: tenant}
}

// MakeRequest implements graphql.Client. It decodes the data of the response into response.Data. If Director rejects the access
// token, which may have been revoked before its expiry, MakeRequest retries once with a new token. The timeout covers both
// attempts.
func (c *call) MakeRequest(ctx context.Context, request *graphql.Request, response *graphql.Response) error {
	body, err := json.Marshal(request)
	if err != nil {
		return failure.Wrap(failure.Internal, err, "encoding a request to Director failed").
			WithReason(failure.ReasonInternal, failure.ComponentDirectorClient)
	}

	limited, cancel := context.WithTimeout(ctx, c.client.timeout)
	defer cancel()

	for again := true; ; again = false {
		token, err := c.client.tokens.Get(limited)
		if err != nil {
			return err
		}

		err = c.attempt(limited, token, body, response.Data)
		if !errors.Is(err, errUnauthorized) || !again {
			return err
		}

		c.client.tokens.Discard(limited, token)
	}
}

// attempt sends the request once. An error about a rejected token has errUnauthorized in its chain.
func (c *call) attempt(ctx context.Context, token string, body []byte, data any) error {
	answer, err := graphqlclient.Send(ctx, c.client.http, graphqlclient.Request{
		URL: c.client.url, Body: body, MaxBytes: maxAnswer, Confidential: c.confidential,
		Header: map[string]string{"Authorization": "Bearer " + token, "Tenant": c.tenant},
	})
	if err != nil {
		return c.unanswered(ctx, err)
	}

	if answer.Status == http.StatusUnauthorized {
		return c.explain(&problem{Message: "HTTP status 401", Extensions: extensions{Code: codeUnauthorized}})
	}

	problem, err := graphqlclient.Decode[problem](answer, data)
	if problem != nil {
		return c.explain(problem)
	}

	if unexpected, ok := errors.AsType[*graphqlclient.Unexpected](err); ok {
		return c.unexpected(unexpected.LogCause(), unexpected.Text)
	}

	if err != nil {
		return c.noResult()
	}

	return nil
}

// unanswered returns the failure.Error for a request that got no response. The cause may contain a long URL, so it is shortened.
func (c *call) unanswered(ctx context.Context, err error) error {
	// The concurrency limit and the circuit breaker reject requests with a failure.Error.
	if typed, ok := errors.AsType[*failure.Error](err); ok {
		return typed
	}

	if ctx.Err() != nil {
		return failure.Wrap(failure.Transient, ctx.Err(), "Director did not respond in time (%s)", c.client.timeout.Round(time.Second)).
			WithReason(failure.ReasonTimeout, failure.ComponentDirectorClient)
	}

	return failure.Wrap(failure.Transient, errors.New(upstream.Excerpt(err.Error())), "Director cannot be reached").
		WithReason(failure.ReasonInternal, failure.ComponentDirectorClient)
}

// unexpected returns the error for a response that is not GraphQL or does not have the expected fields. text completes the
// sentence "it …".
func (c *call) unexpected(cause error, text string) error {
	return failure.Wrap(failure.Transient, cause, "Director could not %s: it %s", c.action, text).
		WithReason(failure.ReasonHTTPStatus, failure.ComponentDirectorClient)
}

// noResult returns the error for a response without the requested data. It is transient: Director omits data after internal
// errors.
func (c *call) noResult() error {
	return failure.New(failure.Transient, "Director could not %s: its response has no data", c.action).
		WithReason(failure.ReasonDirectorNilResponse, failure.ComponentDirector)
}

// checkID returns an error if the response concerns a different runtime.
func (c *call) checkID(got, want string) error {
	if got == want {
		return nil
	}

	return failure.New(failure.Transient, "Director could not %s: its response concerns a different runtime", c.action).
		WithReason(failure.ReasonDirectorIDMismatch, failure.ComponentDirector)
}
