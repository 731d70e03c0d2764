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

// errCursor reports that the cursors of the next and the current page are equal. Without this check, All would read the same
// page forever.
var errCursor = errors.New("the service returned the same cursor twice")

// Operation returns an operation with its timeline, and the broker's Retry-After, which is valid even if the call fails. It
// replaces a generated method, because generated methods do not return headers.
func (c *Client) Operation(ctx context.Context, id string) (operatorapi.Operation, time.Duration, error) {
	var operation operatorapi.Operation

	got, err := c.call(ctx, request{method: http.MethodGet, path: "/operations/" + url.PathEscape(id)}, &operation)

	return operation, got.retryAfter, err
}

// CatalogAt returns the catalog of the responding replica, like GetCatalog, and the broker's time with a precision of one second.
// The time is valid even if the broker rejects the request. It is zero if the response has no date.
func (c *Client) CatalogAt(ctx context.Context) (operatorapi.Catalog, time.Time, error) {
	var catalog operatorapi.Catalog

	got, err := c.call(ctx, request{method: http.MethodGet, path: "/catalog"}, &catalog)

	return catalog, got.date, err
}

// All iterates over the entries of all pages. It stops after the first error, which it yields with a zero entry.
//
// page reads the page at a cursor and returns its entries and the cursor of the next page. An empty cursor selects the first
// page; an empty next cursor marks the last page.
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
