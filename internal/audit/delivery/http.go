package delivery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
	"github.com/environment-broker/environment-broker/internal/program/reload"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// maxResponse is the maximum number of bytes that are read from the response of a collector. If the response is longer, the
// connection is closed.
const maxResponse = 64 << 10

// httpCollector sends a batch as the body of a POST request.
type httpCollector struct {
	url, service string
	token        secret.String
	client       *http.Client
}

func newHTTP(config Config, service string, transport *reload.Transport) *httpCollector {
	return &httpCollector{url: config.URL, service: service, token: config.Token, client: &http.Client{
		Transport: transport, Timeout: config.Timeout,
		// A redirect would send the audit log and the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// errTooLarge is the error for HTTP status 413.
var errTooLarge = errors.New("the audit collector returned HTTP status 413: raise its limit for the size of a request")

// Send implements Collector. If the collector rejects the batch as too large, Send delivers it in smaller requests.
func (c *httpCollector) Send(ctx context.Context, records []chain.Record) error {
	err := c.post(ctx, records)
	if !errors.Is(err, errTooLarge) || len(records) < 2 { //nolint:mnd // a single record cannot be split
		return err
	}

	half := len(records) / 2 //nolint:mnd // two halves
	if err := c.Send(ctx, records[:half]); err != nil {
		return err
	}

	return c.Send(ctx, records[half:])
}

// post sends the records in one request.
func (c *httpCollector) post(ctx context.Context, records []chain.Record) error {
	var body bytes.Buffer

	for _, record := range records {
		line, err := encode(c.service, record)
		if err != nil {
			return fmt.Errorf("encoding record %d: %w", record.Number, err)
		}

		body.Write(line)
		body.WriteByte('\n')
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, &body)
	if err != nil {
		return errors.New("the URL of the audit collector is invalid")
	}

	request.Header.Set("Content-Type", "application/x-ndjson")

	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	}

	response, err := c.client.Do(request)
	if err != nil {
		return fmt.Errorf("sending to the audit collector: %w", withoutURL(err))
	}
	defer response.Body.Close() //nolint:errcheck // only read

	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxResponse)) // only the status matters

	switch {
	case response.StatusCode == http.StatusRequestEntityTooLarge:
		return errTooLarge
	case response.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("the audit collector returned HTTP status %d", response.StatusCode)
	}

	return nil
}

// withoutURL returns the cause of an error of net/http. It drops the URL, because the query may contain a key.
func withoutURL(err error) error {
	if detailed, is := errors.AsType[*url.Error](err); is {
		return detailed.Err
	}

	return err
}

// deadline returns the deadline of the context or the time at which the timeout ends, whichever is earlier.
func deadline(ctx context.Context, timeout time.Duration) time.Time {
	end := time.Now().Add(timeout)
	if earlier, has := ctx.Deadline(); has && earlier.Before(end) {
		return earlier
	}

	return end
}
