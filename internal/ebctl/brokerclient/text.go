package brokerclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// maxTextBytes is the maximum size of a response body that Text reads. The metrics of a service are much smaller.
const maxTextBytes = 16 << 20

// Text returns the response body of a status address, such as http://127.0.0.1:8071/readyz, which needs no credentials. For an
// error response, it returns the status followed by the body, because the body of /readyz explains the error. timeout limits the
// request.
func Text(ctx context.Context, address string, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("building the request: %w", err)
	}

	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

	response, err := client.Do(request)
	if err != nil {
		if wrapped, is := errors.AsType[*url.Error](err); is {
			err = wrapped.Err // without the address, which the caller knows
		}

		return "", fmt.Errorf("no response: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // only read

	body, err := io.ReadAll(io.LimitReader(response.Body, maxTextBytes+1))

	switch {
	case err != nil:
		return "", fmt.Errorf("reading the response: %w", err)
	case len(body) > maxTextBytes:
		return "", fmt.Errorf("the response exceeds %d MiB", maxTextBytes>>20)
	case response.StatusCode >= http.StatusMultipleChoices:
		return response.Status + "\n" + string(body), nil
	default:
		return string(body), nil
	}
}
