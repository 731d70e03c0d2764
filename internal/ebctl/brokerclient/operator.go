package brokerclient

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// errCursor ends All if a broker returns the cursor of the page just read. Otherwise All would read that page forever.
var errCursor = errors.New("the broker returned the same cursor twice")

// Operation returns an operation with its timeline, and the broker's Retry-After, which is also valid if the call fails. The generated
// client has no such method, because its methods drop headers.
func (c *Client) Operation(ctx context.Context, id string) (operatorapi.Operation, time.Duration, error) {
	var operation operatorapi.Operation

	got, err := c.call(ctx, request{method: http.MethodGet, path: "/operations/" + url.PathEscape(id)}, &operation)

	return operation, got.retryAfter, err
}

// ServerTime returns the broker's time to the second, zero if the response has none. It fails if the broker does not respond; a rejection is a
// response too.
func (c *Client) ServerTime(ctx context.Context) (time.Time, error) {
	var ignored json.RawMessage

	got, err := c.call(ctx, request{method: http.MethodGet, path: "/catalog"}, &ignored)
	if rejected, is := errors.AsType[*AnswerError](err); err != nil && (!is || rejected.Temporary()) {
		return time.Time{}, err
	}

	return got.date, nil
}

// All returns the entries of all pages. The sequence ends after the first error, which comes with a zero entry.
//
// page reads the page at the cursor and returns its entries with the cursor of the next page. All passes an empty cursor for the first page;
// an empty next cursor marks the last page.
func All[T any](page func(cursor string) (entries []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor := ""; ; {
			entries, next, err := page(cursor)
			if err == nil && next != "" && next == cursor {
				err = errCursor
			}

			if err != nil {
				yield(*new(T), err)

				return
			}

			for _, entry := range entries {
				if !yield(entry, nil) {
					return
				}
			}

			if next == "" {
				return
			}

			cursor = next
		}
	}
}
