package brokerclient

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// errCursor prevents reading the same pages forever.
var errCursor = errors.New("the broker returned the same cursor twice")

// Operation returns an operation with its timeline, and the broker's Retry-After, which is also valid beside an error.
func (c *Client) Operation(ctx context.Context, id string) (operatorapi.Operation, time.Duration, error) {
	var operation operatorapi.Operation

	got, err := c.call(ctx, request{method: http.MethodGet, path: "/operations/" + url.PathEscape(id)}, &operation)

	return operation, got.retryAfter, err
}

// All returns the entries of all pages until the first error. page returns the entries of one page, which starts at the cursor, and the
// cursor of the next one. The first cursor is empty, and so is the cursor after the last page.
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
