package brokerclient

import (
	"errors"
	"iter"
	"net/url"
)

// errCursor protects from reading the same pages forever.
var errCursor = errors.New("the broker gave the same cursor twice: the list cannot be read to its end")

// allPages returns what stands on the page of each cursor, beginning with the empty one, until a page gives none or fails.
func allPages[T any](page func(cursor string) (entries []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T

		for cursor := ""; ; {
			entries, next, err := page(cursor)
			if err == nil && next != "" && next == cursor {
				err = errCursor
			}

			if err != nil {
				yield(none, err)

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

// chosen returns a query of the parameters that have a value.
func chosen(parameters map[string]string) url.Values {
	query := url.Values{}

	for name, value := range parameters {
		if value != "" {
			query.Set(name, value)
		}
	}

	return query
}

// whenTrue is the value of a parameter that is left out when it is false.
func whenTrue(asked bool) string {
	if asked {
		return "true"
	}

	return ""
}
