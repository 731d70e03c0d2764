// Package graphqlclient sends GraphQL requests over HTTP and decodes the responses. The clients of the Provisioner and of
// Director use the package. Each client classifies the errors itself, because the same error has different meanings for different
// upstreams.
//
// Errors of this package never contain URLs, because a URL may contain credentials. Only LogCause quotes the response: it returns
// a short, printable excerpt, unless the response is confidential.
package graphqlclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/environment-broker/environment-broker/internal/upstream"
)

// Request is a POST request to a GraphQL server.
type Request struct {
	URL string
	// Body is the encoded GraphQL request.
	Body []byte
	// Header contains headers in addition to Content-Type and Accept. Headers with empty values are not sent.
	Header map[string]string
	// MaxBytes limits the body of the response. Decode rejects a longer response.
	MaxBytes int
	// Confidential forbids quoting the response in errors.
	Confidential bool
}

// Answer is the response to a Request. Decode interprets the body.
type Answer struct {
	Status int

	request Request
	body    []byte
}

// Unexpected reports a response that is not a valid GraphQL response, such as the error page of a proxy.
type Unexpected struct {
	// Text completes a sentence that starts with the name of the server, such as "returned HTTP status 502 Bad Gateway".
	Text string
	// excerpt contains the start and the end of the response. It is empty if the response is empty or confidential.
	excerpt string
	// cause is the error of the JSON decoder, or nil.
	cause error
}

// ErrNoData reports a GraphQL response that has neither data nor errors.
var ErrNoData = errors.New("returned no data")

// Error implements error.
func (u *Unexpected) Error() string { return u.Text }

// LogCause returns details for the log: the error of the decoder and an excerpt of the response. Users must not see them, because
// the response may be the error page of a proxy with internal names. LogCause returns nil if there are no details.
func (u *Unexpected) LogCause() error {
	switch {
	case u.excerpt == "":
		return u.cause
	case u.cause == nil:
		return fmt.Errorf("the response is: %s", u.excerpt)
	default:
		return fmt.Errorf("%w; the response is: %s", u.cause, u.excerpt)
	}
}

// Send sends the request and reads the response, regardless of the status. It returns an error if the request cannot be sent or
// the response cannot be read.
func Send(ctx context.Context, client *http.Client, request Request) (Answer, error) {
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, request.URL, bytes.NewReader(request.Body))
	if err != nil {
		return Answer{}, fmt.Errorf("creating a request: %w", upstream.WithoutURL(err))
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
		return Answer{}, upstream.WithoutURL(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read

	body, err := io.ReadAll(io.LimitReader(response.Body, int64(request.MaxBytes)+1))
	if err != nil {
		return Answer{}, fmt.Errorf("reading the response: %w", err)
	}

	return Answer{Status: response.StatusCode, request: request, body: body}, nil
}

// Decode decodes the data of the response into data. If the response has GraphQL errors, Decode returns the first error, decoded
// as the server's error type E. GraphQL errors take precedence over the HTTP status. For any other problem, Decode returns
// ErrNoData or *Unexpected as the error.
func Decode[E any](answer Answer, data any) (*E, error) {
	content, err := contentOf[E](answer)

	switch {
	case err != nil:
		return nil, err
	case len(content.Errors) > 0:
		return &content.Errors[0], nil
	default:
		return nil, answer.decode(content.Data, data)
	}
}

// DecodePartial decodes the response to a request for several fields, some of which may have failed. Unlike Decode, it returns
// all GraphQL errors and decodes the data even if there are errors. The data of a failed field is null.
func DecodePartial[E any](answer Answer, data any) ([]E, error) {
	content, err := contentOf[E](answer)
	if err != nil || len(content.Data) == 0 {
		return content.Errors, err
	}

	return content.Errors, answer.decode(content.Data, data)
}

// content is a GraphQL response. Data is empty if the response contains only errors.
type content[E any] struct {
	Data   json.RawMessage `json:"data"`
	Errors []E             `json:"errors"`
}

// contentOf returns the data and the GraphQL errors in a response. It returns an error if the response contains neither or is not
// valid GraphQL.
func contentOf[E any](answer Answer) (content[E], error) {
	var decoded content[E]

	if len(answer.body) > answer.request.MaxBytes {
		return decoded, &Unexpected{Text: fmt.Sprintf("returned more than %d KiB", answer.request.MaxBytes>>10)}
	}

	err := json.Unmarshal(answer.body, &decoded)

	switch {
	case err == nil && len(decoded.Errors) > 0:
		return decoded, nil
	case answer.Status != http.StatusOK:
		return decoded, answer.unexpected(err, "returned HTTP status %d %s", answer.Status, http.StatusText(answer.Status))
	case err != nil:
		return decoded, answer.unexpected(err, "returned a response that is not GraphQL")
	case len(decoded.Data) == 0:
		return decoded, ErrNoData
	default:
		return decoded, nil
	}
}

func (a Answer) decode(text json.RawMessage, data any) error {
	if err := json.Unmarshal(text, data); err != nil {
		return a.unexpected(err, "returned unexpected data")
	}

	return nil
}

// unexpected returns an error whose LogCause has an excerpt of the response, unless the response is confidential.
func (a Answer) unexpected(cause error, format string, args ...any) *Unexpected {
	unexpected := &Unexpected{Text: fmt.Sprintf(format, args...), cause: cause}
	if len(a.body) > 0 && !a.request.Confidential {
		unexpected.excerpt = upstream.Excerpt(string(a.body))
	}

	return unexpected
}
