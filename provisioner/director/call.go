package director

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/Khan/genqlient/graphql"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// longestAnswer bounds answers, in bytes.
const longestAnswer = 4 << 20

// call sends one request and checks its answer. It is the client of genqlient's functions.
type call struct {
	client *Client
	tenant string
	// action completes "Director could not …".
	action string
	// confidential answers are never quoted.
	confidential bool
}

var _ graphql.Client = (*call)(nil)

func (c *Client) call(action, tenant string) *call {
	return &call{client: c, action: action, tenant: tenant}
}

// MakeRequest sends the request and decodes the answer's data. If Director rejects the token, it retries once with a new one.
func (c *call) MakeRequest(ctx context.Context, request *graphql.Request, response *graphql.Response) error {
	body, err := json.Marshal(request)
	if err != nil {
		return failure.Wrap(failure.Internal, err, "encoding a request to Director failed").
			WithReason(failure.ReasonInternal, failure.ComponentDirectorClient)
	}

	limited, cancel := context.WithTimeout(ctx, c.client.timeout)
	defer cancel()

	for again := true; ; again = false {
		token, err := c.client.tokens.get(limited)
		if err != nil {
			return err
		}

		err = c.attempt(limited, token, body, response.Data)
		if !errors.Is(err, errUnauthorized) || !again {
			return err
		}

		c.client.tokens.discard(token)
	}
}

func (c *call) attempt(ctx context.Context, token string, body []byte, data any) error {
	status, answer, err := c.send(ctx, token, body)
	if err != nil {
		return c.unanswered(ctx, err)
	}

	return c.judge(status, answer, data)
}

func (c *call) send(ctx context.Context, token string, body []byte) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.client.url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("make request: %w", err)
	}

	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)

	if c.tenant != "" {
		request.Header.Set("Tenant", c.tenant)
	}

	response, err := c.client.http.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("send request: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // The body was read.

	answer, err = io.ReadAll(io.LimitReader(response.Body, longestAnswer+1))
	if err != nil {
		return 0, nil, fmt.Errorf("read answer: %w", err)
	}

	return response.StatusCode, answer, nil
}

// judge decodes the answer into data, or classifies the error in it. Errors of GraphQL take precedence over the HTTP status.
func (c *call) judge(status int, answer []byte, data any) error {
	var envelope struct {
		Data   json.RawMessage `json:"data"`
		Errors []problem       `json:"errors"`
	}

	err := json.Unmarshal(answer, &envelope)

	switch {
	case len(answer) > longestAnswer:
		return c.senseless(nil, "answered with more than %d bytes", longestAnswer)
	case status == http.StatusUnauthorized:
		return c.explain(problem{Message: "HTTP status 401", Extensions: extensions{Code: codeUnauthorized}})
	case err == nil && len(envelope.Errors) > 0:
		return c.explain(envelope.Errors[0])
	case status != http.StatusOK:
		return c.senseless(nil, "answered with HTTP status %d %s", status, http.StatusText(status))
	case err != nil:
		return c.senseless(err, "answered with something other than GraphQL%s", c.quote(answer))
	case len(envelope.Data) == 0:
		return c.nothing()
	}

	if err := json.Unmarshal(envelope.Data, data); err != nil {
		return c.senseless(err, "answered with unexpected data%s", c.quote(answer))
	}

	return nil
}

// unanswered classifies the error of a request without an answer. A URL may hold credentials, so only the inner error is kept.
func (c *call) unanswered(ctx context.Context, err error) error {
	// The limit and the circuit breaker reject requests with errors of their own.
	if known, ok := errors.AsType[*failure.Error](err); ok {
		return known
	}

	if ctx.Err() != nil {
		return failure.Wrap(failure.Transient, ctx.Err(), "Director did not answer in time (%s)", c.client.timeout.Round(time.Second)).
			WithReason(failure.ReasonTimeout, failure.ComponentDirectorClient)
	}

	return failure.Wrap(failure.Transient, inner(err), "Director cannot be reached").
		WithReason(failure.ReasonInternal, failure.ComponentDirectorClient)
}

// senseless returns the error for an unexpected answer.
func (c *call) senseless(cause error, format string, args ...any) error {
	return failure.Wrap(failure.Transient, cause, "Director could not %s: it %s", c.action, fmt.Sprintf(format, args...)).
		WithReason(failure.ReasonHTTPStatus, failure.ComponentDirectorClient)
}

// nothing returns the error for an answer without the requested data.
func (c *call) nothing() error {
	return failure.New(failure.Transient, "Director could not %s: it answered without data", c.action).
		WithReason(failure.ReasonDirectorNilResponse, failure.ComponentDirector)
}

// same fails if an answer is about another runtime.
func (c *call) same(got, want string) error {
	if got == want {
		return nil
	}

	return failure.New(failure.Transient, "Director could not %s: it answered about another runtime", c.action).
		WithReason(failure.ReasonDirectorIDMismatch, failure.ComponentDirector)
}

// quote returns the start of an answer, to be appended to an error text.
func (c *call) quote(answer []byte) string {
	if c.confidential || len(answer) == 0 {
		return ""
	}

	return ": " + excerpt(string(answer))
}

// inner returns the error without the URL around it.
func inner(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}

	return errors.New(excerpt(err.Error()))
}

// excerpt returns the start of a text as one printable line.
func excerpt(text string) string {
	const longest = 200

	// Long texts are cut before they are scanned; a character has four bytes at most.
	if most := 16 * longest; len(text) > most {
		text = text[:most]
	}

	printable := strings.Map(func(char rune) rune {
		if !unicode.IsPrint(char) {
			return ' '
		}

		return char
	}, strings.ToValidUTF8(text, " "))

	letters := []rune(strings.Join(strings.Fields(printable), " "))
	if len(letters) > longest {
		return string(letters[:longest]) + "…"
	}

	return string(letters)
}
