// Package graphqlclient sends GraphQL requests over HTTP and reads the answers. The clients of the Provisioner and of Director use it; they
// classify its errors, because what an error means depends on the upstream.
//
// No error of this package contains a URL, which may hold credentials. Excerpts of an answer are short, printable, and never taken from a
// Confidential one.
package graphqlclient

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
	"unicode"
)

// maxExcerpt is the length of the longest excerpt, in characters.
const maxExcerpt = 200

// Request is one POST to a GraphQL server.
type Request struct {
	URL string
	// Body is the encoded GraphQL request.
	Body []byte
	// Header holds the headers besides those of the content type. Empty values are not sent.
	Header map[string]string
	// MaxBytes limits the part of the answer that is read.
	MaxBytes int
	// Confidential answers are never quoted in errors.
	Confidential bool
}

// Answer is the answer to a Request.
type Answer struct {
	Status int

	request Request
	body    []byte
}

// Unexpected is the error for an answer that holds neither data nor an error of GraphQL.
type Unexpected struct {
	// Text completes "the server …".
	Text string
	// Excerpt is the start of the answer, after a colon; empty if the answer is empty or confidential.
	Excerpt string
	// Cause is the error of the decoder, if any.
	Cause error
}

// ErrNoData is the error for GraphQL answers without data and errors.
var ErrNoData = errors.New("answered without data")

// Error returns the text with the excerpt.
func (u *Unexpected) Error() string { return u.Text + u.Excerpt }

// Unwrap returns the cause.
func (u *Unexpected) Unwrap() error { return u.Cause }

// Send sends the request and reads the answer, whatever its status.
func Send(ctx context.Context, client *http.Client, request Request) (Answer, error) {
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, request.URL, bytes.NewReader(request.Body))
	if err != nil {
		return Answer{}, fmt.Errorf("making a request: %w", WithoutURL(err))
	}

	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("Accept", "application/json")

	for name, value := range request.Header {
		if value != "" {
			post.Header.Set(name, value)
		}
	}

	response, err := client.Do(post)
	if err != nil {
		return Answer{}, WithoutURL(err)
	}
	defer response.Body.Close() //nolint:errcheck // The body was read.

	body, err := io.ReadAll(io.LimitReader(response.Body, int64(request.MaxBytes)+1))
	if err != nil {
		return Answer{}, fmt.Errorf("reading the answer: %w", err)
	}

	return Answer{Status: response.StatusCode, request: request, body: body}, nil
}

// Decode reads the answer's data into data, or returns the first GraphQL error of the answer, whose form E depends on the server. Errors of
// GraphQL take precedence over the HTTP status. The error is ErrNoData or *Unexpected.
func Decode[E any](answer Answer, data any) (*E, error) {
	if len(answer.body) > answer.request.MaxBytes {
		return nil, &Unexpected{Text: fmt.Sprintf("answered with more than %d bytes", answer.request.MaxBytes)}
	}

	var envelope struct {
		Data   json.RawMessage `json:"data"`
		Errors []E             `json:"errors"`
	}

	err := json.Unmarshal(answer.body, &envelope)

	switch {
	case err == nil && len(envelope.Errors) > 0:
		return &envelope.Errors[0], nil
	case answer.Status != http.StatusOK:
		return nil, answer.unexpected(err, "answered with HTTP status %d %s", answer.Status, http.StatusText(answer.Status))
	case err != nil:
		return nil, answer.unexpected(err, "answered with something other than GraphQL")
	case len(envelope.Data) == 0:
		return nil, ErrNoData
	}

	if err := json.Unmarshal(envelope.Data, data); err != nil {
		return nil, answer.unexpected(err, "answered with unexpected data")
	}

	return nil, nil //nolint:nilnil // no error of either sort
}

func (a Answer) unexpected(cause error, format string, args ...any) *Unexpected {
	unexpected := &Unexpected{Text: fmt.Sprintf(format, args...), Cause: cause}
	if len(a.body) > 0 && !a.request.Confidential {
		unexpected.Excerpt = ": " + Excerpt(string(a.body))
	}

	return unexpected
}

// IsURL reports whether the text is an absolute HTTP or HTTPS URL.
func IsURL(text string) bool {
	parsed, err := url.Parse(text)

	return err == nil && parsed.Host != "" && (parsed.Scheme == "http" || parsed.Scheme == "https")
}

// NoRedirects is for http.Client.CheckRedirect: a followed redirect could carry tokens and secrets to another host.
func NoRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// WithoutURL returns the cause inside an error of net/http, without the request's URL.
func WithoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}

	return err
}

// Excerpt returns the first 200 characters of a foreign text as one printable line.
func Excerpt(text string) string {
	// Long texts are cut before the work on each character; a character has at most four bytes.
	if most := 16 * maxExcerpt; len(text) > most {
		text = text[:most]
	}

	printable := strings.Map(func(char rune) rune {
		if !unicode.IsPrint(char) {
			return ' '
		}

		return char
	}, strings.ToValidUTF8(text, " "))

	letters := []rune(strings.Join(strings.Fields(printable), " "))
	if len(letters) > maxExcerpt {
		return string(letters[:maxExcerpt]) + "…"
	}

	return string(letters)
}
