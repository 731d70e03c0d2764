package brokerclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// maxResponseBytes is the maximum size of a response body. The largest page of the operator API is much smaller.
const maxResponseBytes = 8 << 20

// Config contains the address of the service that a Client calls, the credentials and the limits.
type Config struct {
	// Address is the service's URL without a trailing slash.
	Address string
	// Username and Password are sent with HTTP Basic authentication unless both are empty or Token is set.
	Username string
	Password secret.String
	// Token is sent as a bearer token. Empty means no token.
	Token secret.String
	// Timeout limits each call except FollowEvents, from connecting to the last byte of the response.
	Timeout time.Duration
	// UserAgent is the User-Agent header of all requests.
	UserAgent string
	// Provisioner is true if Address is the address of the Provisioner, which serves the same operator API. It affects only
	// error messages.
	Provisioner bool
	// NewID returns a new value for the X-Broker-API-Request-Identity header of an OSB request. The broker logs this value, so users
	// can find their request in the log.
	NewID func() string
}

// Client calls one broker or Provisioner. It is safe for concurrent use, and need not be closed.
type Client struct {
	config Config
	http   *http.Client
	// platformRegion is the region in the paths of OSB requests, unless the caller of a method passes another one. If it is
	// empty, the paths contain no region.
	platformRegion string
}

// In returns a copy of the client that sends OSB requests for platformRegion, or without a region if platformRegion is empty.
func (c *Client) In(platformRegion string) *Client {
	limited := *c
	limited.platformRegion = platformRegion

	return &limited
}

// New returns a client. The first call connects to the service.
func New(config Config) *Client {
	return &Client{
		config: config,
		http: &http.Client{
			Timeout: config.Timeout,
			// Do not follow redirects, because that could change a PUT to a GET. The error contains the new address.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func (c *Client) service() string {
	if c.config.Provisioner {
		return "Provisioner"
	}

	return "broker"
}

// Noun returns the word for an instance in messages: "runtime" for the Provisioner, whose operator API represents runtimes as
// instances, and "instance" for the broker.
func Noun(provisioner bool) string {
	if provisioner {
		return "runtime"
	}

	return "instance"
}

// Noun returns the word for an instance of the client's service.
func (c *Client) Noun() string { return Noun(c.config.Provisioner) }

// request is a request to the service. If body is nil, the request has no body.
type request struct {
	method string
	path   string
	query  url.Values
	header http.Header
	body   any
}

// answer contains the status of a response, its Retry-After (0 if absent) and its Date (zero if absent).
type answer struct {
	status     int
	retryAfter time.Duration
	date       time.Time
}

// callFor sends a request and returns the decoded response body.
func callFor[T any](ctx context.Context, c *Client, request request) (T, error) {
	var body T

	_, err := c.call(ctx, request, &body)

	return body, err
}

// set adds a query parameter unless the value is the zero value.
func set[T comparable](query url.Values, name string, value T) {
	if value != *new(T) {
		query.Set(name, fmt.Sprint(value))
	}
}

// call sends a request and decodes the response body into target. The returned answer is also valid if the broker rejects the
// request.
func (c *Client) call(ctx context.Context, request request, target any) (answer, error) {
	sent, err := c.build(ctx, request)
	if err != nil {
		return answer{}, err
	}

	response, err := c.http.Do(sent)
	if err != nil {
		return answer{}, c.unreachable(ctx, err)
	}
	defer response.Body.Close() //nolint:errcheck // only read

	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes+1))
	if err != nil {
		return answer{}, c.unreachable(ctx, err)
	}

	if len(body) > maxResponseBytes {
		return answer{}, fmt.Errorf("the response to %s %s exceeds %d MiB; is this the address of a %s?",
			request.method, request.path, maxResponseBytes>>20, c.service())
	}

	got := answer{status: response.StatusCode, retryAfter: retryAfter(response.Header)}

	got.date, _ = http.ParseTime(response.Header.Get("Date")) // zero if absent

	if got.status >= http.StatusMultipleChoices {
		return got, c.answerError(response, body)
	}

	if err := json.Unmarshal(body, target); err != nil {
		return got, fmt.Errorf("the response to %s %s is not JSON; is this the address of a %s? %w",
			request.method, request.path, c.service(), err)
	}

	return got, nil
}

// build returns the HTTP request with the credentials and headers that all calls have in common.
func (c *Client) build(ctx context.Context, request request) (*http.Request, error) {
	var body io.Reader

	if request.body != nil {
		encoded, err := json.Marshal(request.body)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", request.method, request.path, err)
		}

		body = bytes.NewReader(encoded)
	}

	target := c.config.Address + request.path
	if len(request.query) > 0 {
		target += "?" + request.query.Encode()
	}

	built, err := http.NewRequestWithContext(ctx, request.method, target, body)
	if err != nil {
		return nil, fmt.Errorf("building %s %s: %w", request.method, request.path, err)
	}

	maps.Copy(built.Header, request.header)

	built.Header.Set("Accept", "application/json")
	built.Header.Set("User-Agent", c.config.UserAgent)

	if body != nil {
		built.Header.Set("Content-Type", "application/json")
	}

	switch {
	case c.config.Token != "":
		built.Header.Set("Authorization", "Bearer "+c.config.Token.Reveal())
	case c.config.Username != "" || c.config.Password != "":
		built.SetBasicAuth(c.config.Username, c.config.Password.Reveal())
	}

	return built, nil
}

// unreachable converts an error from net/http. If the caller canceled the call, it returns the context's error; otherwise it
// returns an UnreachableError with a readable cause.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}

	// Unwrap url.Error, because its text repeats the method and the URL.
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}

	var network net.Error

	switch {
	case errors.As(err, &network) && network.Timeout():
		err = fmt.Errorf("no response within %s: %w", c.config.Timeout, context.DeadlineExceeded)
	case errors.Is(err, http.ErrSchemeMismatch):
		err = fmt.Errorf("the service does not use TLS; use an address that starts with http://: %w", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("the connection was closed: %w", err)
	}

	return &UnreachableError{Service: c.service(), Address: c.config.Address, Cause: err}
}

// retryAfter returns the duration in the Retry-After header, or 0 if the header is absent or invalid. It ignores HTTP dates,
// which the broker never sends.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}

	return time.Duration(seconds) * time.Second
}
