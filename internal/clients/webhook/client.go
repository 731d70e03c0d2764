package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/internal/upstream/networks"
)

// The Standard Webhooks headers.
const (
	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerSignature = "webhook-signature"
)

const (
	// maxBody is the maximum number of bytes that are read from the body of a response. A connection can be reused only if the
	// body was read to its end.
	maxBody = 4 << 10
	// maxHeader is the maximum size of the response headers, in bytes.
	maxHeader = 16 << 10
	// maxIdle is the maximum number of idle connections per receiver. An idle connection is closed after idleTimeout.
	maxIdle     = 2
	idleTimeout = 30 * time.Second
	// maxRetryAfter is the longest pause that a receiver can request.
	maxRetryAfter = 24 * time.Hour
	// maxURL is the maximum length of a URL in bytes.
	maxURL = 2 << 10

	schemeHTTP     = "http"
	textNotAllowed = "an http URL must have an address in one of the networks in APP_WEBHOOK_NETWORKS"
)

// Message is a message to one receiver. Each attempt to send it uses a new Message with the same ID.
type Message struct {
	URL secret.String
	// Secrets are the keys that sign the message. There are several while a secret is being rotated.
	Secrets []secret.String
	// ID identifies the message. It is the same in all attempts.
	ID string
	// At is the time of the attempt.
	At   time.Time
	Body []byte
}

// Error describes a failed attempt to send a message.
type Error struct {
	// Status is the HTTP status, or 0 if there was no response.
	Status int
	// RetryAfter is the pause that the receiver requests, or 0.
	RetryAfter time.Duration

	text string
}

// Error implements error. The text contains neither the URL nor a secret.
func (e *Error) Error() string { return e.text }

// Client sends messages. It is safe for concurrent use.
type Client struct {
	https, http *http.Client
	allowed     networks.Networks
	timeout     time.Duration
}

// New returns a client that connects to public addresses and to the allowed networks. Without TLS, it connects only to the
// allowed networks. timeout limits each attempt.
func New(allowed networks.Networks, timeout time.Duration) *Client {
	build := func(permitted networks.Networks) *http.Client {
		transport := permitted.Transport(timeout)
		transport.TLSHandshakeTimeout = timeout
		transport.MaxResponseHeaderBytes = maxHeader
		transport.MaxIdleConnsPerHost = maxIdle
		transport.IdleConnTimeout = idleTimeout
		transport.ForceAttemptHTTP2 = true

		return &http.Client{
			Transport: transport, Timeout: timeout,
			// A redirect could lead to another server, which must not get the message.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}

	return &Client{https: build(allowed), http: build(allowed.Only()), allowed: allowed, timeout: timeout}
}

// CheckURL rejects a URL that messages cannot be sent to. It does not resolve host names.
func (c *Client) CheckURL(text string) error {
	parsed, err := url.Parse(text)

	switch {
	case len(text) > maxURL:
		return fmt.Errorf("the URL has more than %d bytes", maxURL)
	case err != nil || parsed.Host == "" || parsed.Hostname() == "" || parsed.Opaque != "":
		return errors.New("the URL is invalid")
	case parsed.Scheme != "https" && parsed.Scheme != schemeHTTP:
		return errors.New("the URL must begin with https://")
	case parsed.User != nil:
		return errors.New("the URL must not contain credentials: receivers must verify the signatures of messages instead")
	case parsed.Fragment != "":
		return errors.New("the URL must not contain a fragment")
	case parsed.Scheme == schemeHTTP && c.allowed.Empty():
		return errors.New("the URL must begin with https://, because APP_WEBHOOK_NETWORKS allows no network")
	}

	permitted, refused := c.allowed, networks.ErrRefused
	if parsed.Scheme == schemeHTTP {
		permitted, refused = permitted.Only(), errors.New(textNotAllowed)
	}

	if address, err := netip.ParseAddr(parsed.Hostname()); err == nil && !permitted.Permits(address) {
		return refused
	}

	return nil
}

// Send sends the message. It returns nil if the receiver has confirmed the message. Otherwise the error is an *Error, unless a
// secret is invalid.
func (c *Client) Send(ctx context.Context, message Message) error {
	request, err := build(ctx, message)
	if err != nil {
		return err
	}

	client := c.https
	if request.URL.Scheme == schemeHTTP {
		client = c.http
	}

	response, err := client.Do(request)
	if err != nil {
		return c.unreachable(request.URL.Scheme, err)
	}
	defer response.Body.Close() //nolint:errcheck // only read

	_, _ = io.CopyN(io.Discard, response.Body, maxBody) // only the status matters

	if response.StatusCode >= http.StatusOK && response.StatusCode < http.StatusMultipleChoices {
		return nil
	}

	return &Error{
		Status: response.StatusCode, RetryAfter: upstream.RetryAfter(response.Header, message.At, maxRetryAfter),
		text: strings.TrimSpace(fmt.Sprintf("HTTP status %d %s", response.StatusCode, http.StatusText(response.StatusCode))),
	}
}

// build returns the signed request.
func build(ctx context.Context, message Message) (*http.Request, error) {
	signatures := make([]string, 0, len(message.Secrets))

	for _, each := range message.Secrets {
		signature, err := sign(each, message.ID, message.At, message.Body)
		if err != nil {
			return nil, err
		}

		signatures = append(signatures, signature)
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, message.URL.Reveal(), bytes.NewReader(message.Body))
	if err != nil {
		return nil, &Error{text: "the URL is invalid"} // the cause quotes the URL
	}

	// Standard Webhooks writes header names in lower case. HTTP ignores case.
	request.Header.Set(headerID, message.ID)
	request.Header.Set(headerTimestamp, strconv.FormatInt(message.At.Unix(), 10))
	request.Header.Set(headerSignature, strings.Join(signatures, " "))
	request.Header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	request.Header.Set("User-Agent", "environment-broker")

	return request, nil
}

// unreachable returns the error for an attempt without a response. The error states only the kind of the cause, because errors
// of http.Client quote the URL.
func (c *Client) unreachable(scheme string, err error) *Error {
	var (
		timeout net.Error
		name    *net.DNSError
	)

	switch {
	case errors.Is(err, networks.ErrRefused) && scheme == schemeHTTP:
		return &Error{text: textNotAllowed}
	case errors.Is(err, networks.ErrRefused):
		return &Error{text: networks.ErrRefused.Error()}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &Error{text: fmt.Sprintf("the receiver did not respond within %s", c.timeout)}
	case errors.As(err, &name):
		return &Error{text: "the receiver's host name cannot be resolved"}
	case strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "x509: "):
		return &Error{text: "the TLS connection to the receiver failed: check its certificate"}
	default:
		return &Error{text: "the connection to the receiver failed"}
	}
}
