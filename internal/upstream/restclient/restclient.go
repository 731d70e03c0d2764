package restclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

const (
	// maxResponseBytes is the maximum size of a response. The called systems return only single objects and short lists, except
	// those that a Request reads with a List.
	maxResponseBytes = 4 << 20
	// maxRetryAfter limits the pause that a system can request, so that an incorrect Retry-After header cannot delay an
	// operation for hours.
	maxRetryAfter = 5 * time.Minute
)

// Options configures a Client. Authorize and Grant are optional.
type Options struct {
	// Title is the name of the system in error messages, such as "EDP". Component is the constant of package failure for the system.
	Title, Component string
	// Settings names the environment variables with the address or the credentials, for errors about them.
	Settings string
	// Transport sends the requests. It should be a transport that upstream.System.Transport returned.
	Transport http.RoundTripper
	// Timeout limits each call, including the request for a token.
	Timeout time.Duration
	// Authorize adds credentials that do not expire. It is nil for clients that use tokens.
	Authorize func(request *http.Request)
	// Grant describes how to request tokens. It is nil for systems that do not use tokens.
	Grant *Grant
}

// Client calls one system. It is safe for concurrent use.
type Client struct {
	options Options
	http    *http.Client
	tokens  *upstream.Tokens
}

// New returns a client. It does not call the system.
func New(options Options) *Client {
	client := &Client{options: options, http: &http.Client{Transport: options.Transport, CheckRedirect: upstream.NoRedirects}}
	if options.Grant != nil {
		client.tokens = upstream.NewTokens(client.requestToken, func(ctx context.Context) error { return client.unanswered(ctx, ctx.Err()) })
	}

	return client
}

// Request describes a call.
type Request struct {
	Method, URL string
	// Action completes the clause "EDP could not …" in error messages.
	Action string
	// Body is encoded as JSON, unless it is nil. ContentType is its type, or empty for application/json.
	Body        any
	ContentType string
	// Into receives the decoded JSON response. If it is nil, the response must be empty or valid JSON: anything else may be a
	// proxy's error page, which does not prove that the system has executed the request.
	Into any
	// List, if set, takes the place of Into. It receives the elements of a list that may be long.
	List *List
}

// StatusError is the cause of the error for a response with an unexpected status.
type StatusError struct {
	Status int
	// RetryAfter is the pause that the system requests, at most maxRetryAfter, or zero.
	RetryAfter time.Duration
	// Body is the start of the response body, in which callers can look for known error messages. It may contain secrets and
	// must never be shown to users.
	Body string
}

// Error implements error.
func (e *StatusError) Error() string { return fmt.Sprintf("HTTP status %d", e.Status) }

// RetryAfter returns the pause that the system requested, or the value of otherwise if it requested none.
func RetryAfter(err error, otherwise time.Duration) time.Duration {
	if status, is := errors.AsType[*StatusError](err); is && status.RetryAfter > 0 {
		return status.RetryAfter
	}

	return otherwise
}

// unsent wraps the error of a request that was not sent.
type unsent struct{ error }

// Unwrap returns the classified error.
func (u unsent) Unwrap() error { return u.error }

// NotExecuted reports whether the error proves that the system has not executed the request: the request was not sent, or the
// response has a status of 300 or more, except 502 and 504. After other errors, the system may have executed the request, for
// example if the response was lost or invalid, or if a gateway received no response (502, 504).
func NotExecuted(err error) bool {
	if _, is := errors.AsType[unsent](err); is {
		return true
	}

	status, is := errors.AsType[*StatusError](err)

	return is && status.Status >= http.StatusMultipleChoices && status.Status != http.StatusBadGateway && status.Status != http.StatusGatewayTimeout
}

// Do sends the request. Its errors wrap a *failure.Error, whose kind is
//
//   - Transient if the system is unreachable, slow or overloaded (408, 429, 500 and above), returns no valid JSON, or rejects the
//     credentials, which an operator can correct (401, 403);
//   - NotFound for 404, Conflict for 409, and Permanent for other statuses. A 404 with a body that is not JSON is Transient: it may be a
//     proxy's error page, which does not prove that the object is missing.
func (c *Client) Do(ctx context.Context, request Request) error {
	limited, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()

	token, err := c.token(limited)
	if err != nil {
		return unsent{err}
	}

	answer, err := c.send(limited, request, token)
	if err == nil && answer.Status == http.StatusUnauthorized && c.tokens != nil {
		// The system may revoke tokens before they expire.
		c.tokens.Discard(limited, token)

		if token, err = c.token(limited); err != nil {
			return unsent{err}
		}

		answer, err = c.send(limited, request, token)
	}

	if err != nil {
		return err
	}

	return c.result(request, answer)
}

// Probe sends a GET request to the address. It returns an error only if there is no response: a response with any status shows
// that the system works. Options.Timeout does not apply; the caller's context must limit the request.
func (c *Client) Probe(ctx context.Context, address string) error {
	_, err := c.send(ctx, Request{Method: http.MethodGet, URL: address, Action: "respond"}, "")

	return err
}

func (c *Client) token(ctx context.Context) (string, error) {
	if c.tokens == nil {
		return "", nil
	}

	return c.tokens.Get(ctx)
}

// answer is a response that was read completely.
type answer struct {
	StatusError

	content []byte
	// listed reports whether the elements of the response were passed to Request.List.
	listed bool
}

// send sends the request once. Its errors wrap a *failure.Error. A response is not an error, whatever its status.
func (c *Client) send(ctx context.Context, request Request, token string) (answer, error) {
	var body io.Reader

	if request.Body != nil {
		encoded, err := json.Marshal(request.Body)
		if err != nil {
			return answer{}, failure.Wrap(failure.Internal, err, "encoding a request to %s", c.options.Title)
		}

		body = bytes.NewReader(encoded)
	}

	sent, err := http.NewRequestWithContext(ctx, request.Method, request.URL, body)
	if err != nil {
		return answer{}, failure.New(failure.Permanent, "the address of %s is invalid: see %s", c.options.Title, c.options.Settings).
			WithReason(failure.ReasonInternal, c.options.Component)
	}

	sent.Header.Set("Accept", "application/json")

	if body != nil {
		sent.Header.Set("Content-Type", cmp.Or(request.ContentType, "application/json"))
	}

	if c.options.Authorize != nil {
		c.options.Authorize(sent)
	}

	if token != "" {
		sent.Header.Set("Authorization", "Bearer "+token)
	}

	return c.exchange(sent, request.List)
}

// exchange sends the request and reads the response, whose elements it passes to the list, if there is one. It returns an error if the
// response is too large, but not if the status indicates an error.
func (c *Client) exchange(request *http.Request, list *List) (answer, error) {
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, c.unanswered(request.Context(), err)
	}
	defer response.Body.Close() //nolint:errcheck // only read

	if list != nil && succeeded(response.StatusCode) {
		listed, err := c.readList(response, *list)

		return answer{StatusError: StatusError{Status: response.StatusCode}, listed: listed}, err
	}

	content, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes+1))
	if err != nil {
		return answer{}, c.unanswered(request.Context(), err)
	}

	if len(content) > maxResponseBytes {
		return answer{}, c.tooLarge(maxResponseBytes)
	}

	return answer{content: content, StatusError: StatusError{
		Status: response.StatusCode, Body: upstream.Excerpt(string(content)),
		RetryAfter: upstream.RetryAfter(response.Header, time.Now(), maxRetryAfter),
	}}, nil
}

// result decodes the response if its status indicates success. Otherwise, it returns an error that classifies the status.
func (c *Client) result(request Request, got answer) error {
	status := &got.StatusError
	kind, text := failure.Permanent, "rejects the request with"

	switch code := got.Status; {
	case succeeded(code):
		if !got.listed && (request.List != nil || !decodes(got.content, request.Into)) {
			return c.unexpected(request, nil)
		}

		return nil
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return c.transient(failure.ReasonHTTPStatus, status, "%s rejects the credentials with HTTP status %d: an operator must correct %s",
			c.options.Title, code, c.options.Settings)
	case code == http.StatusNotFound && !decodes(got.content, nil):
		return c.unexpected(request, status)
	case code == http.StatusNotFound:
		kind = failure.NotFound
	case code == http.StatusConflict:
		kind = failure.Conflict
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		kind, text = failure.Transient, "returned"
	}

	return failure.Wrap(kind, status, "%s could not %s: it %s HTTP status %d %s",
		c.options.Title, request.Action, text, got.Status, http.StatusText(got.Status)).
		WithReason(failure.ReasonHTTPStatus, c.options.Component)
}

func succeeded(status int) bool {
	return status >= http.StatusOK && status < http.StatusMultipleChoices
}

// decodes stores a JSON response in into, and reports whether that was possible. If into is nil, decodes reports whether the
// response is empty or valid JSON.
func decodes(content []byte, into any) bool {
	if into == nil {
		return len(bytes.TrimSpace(content)) == 0 || json.Valid(content)
	}

	return json.Unmarshal(content, into) == nil
}

// unanswered classifies the error of a request for which no complete response was received. The system may have executed the
// request.
func (c *Client) unanswered(ctx context.Context, err error) error {
	if guarded, is := errors.AsType[*failure.Error](err); is { // from the call limit or the circuit breaker
		return unsent{guarded}
	}

	if errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return c.transient(failure.ReasonTimeout, context.DeadlineExceeded, "%s did not respond within %s", c.options.Title, c.options.Timeout)
	}

	// The cause may contain an address, so it is only logged.
	unreachable := c.transient("", errors.New(upstream.Excerpt(upstream.WithoutURL(err).Error())), "%s cannot be reached", c.options.Title)
	if network, is := errors.AsType[*net.OpError](err); is && network.Op == "dial" {
		return unsent{unreachable}
	}

	return unreachable
}

// unexpected returns the error for a response that is not the expected JSON. cause is its status, or nil after a success.
func (c *Client) unexpected(request Request, cause error) error {
	return c.transient(failure.ReasonHTTPStatus, cause, "%s could not %s: it returned a response that is not the expected JSON",
		c.options.Title, request.Action)
}

// tooLarge returns the error for a response with more than limit bytes.
func (c *Client) tooLarge(limit int) error {
	return c.transient(failure.ReasonHTTPStatus, nil, "%s returned more than %d MiB", c.options.Title, limit>>20)
}

func (c *Client) transient(reason string, cause error, format string, args ...any) error {
	return failure.Wrap(failure.Transient, cause, format, args...).WithReason(reason, c.options.Component)
}
