package bounds

import (
	"fmt"
	"io"
	"net/http"
)

// ResponseError reports a response body that exceeds a limit. It is not an http.MaxBytesError, which servers answer with status 413,
// because the caller of the service cannot shorten the response of an upstream.
type ResponseError struct {
	// Limit is the maximum size in bytes.
	Limit int64
}

// Error implements error.
func (e *ResponseError) Error() string {
	return fmt.Sprintf("the response has more than %d bytes", e.Limit)
}

// Responses returns a function that wraps a transport and limits response bodies: reading more than limit bytes fails with a
// *ResponseError.
func Responses(limit int64) func(next http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return responses{next: next, limit: limit} }
}

type responses struct {
	next  http.RoundTripper
	limit int64
}

// RoundTrip implements http.RoundTripper.
func (r responses) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}

	response.Body = &responseBody{ReadCloser: response.Body, left: r.limit, limit: r.limit}

	return response, nil
}

type responseBody struct {
	io.ReadCloser

	// left is the number of bytes that may still be read. It is negative after the limit has been exceeded.
	left, limit int64
}

// Read implements io.Reader. It reads one byte beyond the limit, because only that byte shows that the body is too long.
func (b *responseBody) Read(into []byte) (int, error) {
	if b.left < 0 {
		return 0, &ResponseError{Limit: b.limit}
	}

	n, err := b.ReadCloser.Read(into[:min(int64(len(into)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return n - 1, &ResponseError{Limit: b.limit}
	}

	return n, err
}
