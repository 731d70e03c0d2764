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

// maxAnswer is how many bytes of an answer are read: 8 MiB, far more than a page of runtimes needs.
const maxAnswer = 8 << 20

// Config tells which broker is called, and how.
type Config struct {
	// Address is the broker's URL, without a slash at its end.
	Address string
	// Username and Password are sent unless both are empty.
	Username string
	Password secret.String
	// Token, if any, is sent instead.
	Token secret.String
	// Timeout is for each call, from connecting to the last byte of the answer.
	Timeout time.Duration
	// UserAgent names the caller.
	UserAgent string
	// NewID makes the identity that a request carries into the broker's log.
	NewID func() string
}

// Client calls one broker.
type Client struct {
	config Config
	http   *http.Client
}

// New returns a client. It connects with the first call.
func New(config Config) *Client {
	return &Client{
		config: config,
		http: &http.Client{
			Timeout: config.Timeout,
			// A redirected PUT would arrive as a GET. Whoever is redirected has to use the other address.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// request is a call of the broker.
type request struct {
	method string
	path   string
	query  url.Values
	header http.Header
	body   any
}

// answer is what came back: the status of a success, and for how long the broker wants to be left alone.
type answer struct {
	status     int
	retryAfter time.Duration
}

// call sends the request and decodes the answer of a success into the target.
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

	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return answer{}, c.unreachable(ctx, err)
	}

	if len(body) > maxAnswer {
		return answer{}, fmt.Errorf("the answer to %s %s is longer than %d MiB", request.method, request.path, maxAnswer>>20)
	}

	got := answer{status: response.StatusCode, retryAfter: retryAfter(response.Header)}

	if got.status >= http.StatusMultipleChoices {
		return got, answerError(response, body)
	}

	if err := json.Unmarshal(body, target); err != nil {
		return got, fmt.Errorf("the answer to %s %s cannot be read; is this the address of a broker? %w",
			request.method, request.path, err)
	}

	return got, nil
}

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

// unreachable tells a broker that gave no answer from a caller that no longer wants one.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}

	// What url.Error adds, the method and the whole URL, is in the way of the cause.
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}

	var network net.Error

	switch {
	case errors.As(err, &network) && network.Timeout():
		err = fmt.Errorf("nothing within %s: %w", c.config.Timeout, context.DeadlineExceeded)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("the connection broke: %w", err)
	}

	return &UnreachableError{Address: c.config.Address, Cause: err}
}

// retryAfter reads the header of that name; the form with a date is not used by brokers.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}

	return time.Duration(seconds) * time.Second
}
